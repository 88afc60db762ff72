package zklock_test

import (
	"log/slog"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
)

// Every goroutine has an owner that waits for its end. So when all clients and ensembles
// of the tests are closed, none is left.
//
// The tests lose thousands of locks. Their log would hide what matters.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	leaks.Main(m)
}
