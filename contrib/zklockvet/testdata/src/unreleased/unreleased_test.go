package unreleased

import (
	"context"

	"github.com/zklock/go-zklock/zklock"
)

// A test leaves its locks to the Close of its client.
func leftToTheTest(ctx context.Context, mutex *zklock.Mutex) { mutex.Acquire(ctx) }
