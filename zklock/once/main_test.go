package once_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"
)

// The tests lose many locks. The log of the client would hide what matters.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}
