// Package once has the names of the real one that the tests call.
package once

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

type Option interface{ apply() }

func Do(ctx context.Context, client *zklock.Client, name, slot string, fn func(ctx context.Context) error, opts ...zklock.AcquireOption) (ran bool, err error) {
	return false, nil
}

func Every(ctx context.Context, client *zklock.Client, name string, period time.Duration, job func(ctx context.Context, slot time.Time) error, opts ...Option) error {
	return nil
}
