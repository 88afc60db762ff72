package once_test

import (
	"log/slog"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
)

// The tests lose many locks. The log of the client would hide what matters.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	leaks.Main(m)
}
