package session

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// A client without WithLogger has no logger of its own: a session with a shorter timeout than was
// asked for is then logged to slog's default.
func TestShorterTimeoutIsLoggedWithoutALogger(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	set := &Settings{SessionTimeout: 2 * time.Minute, TickTime: 3 * time.Second}
	set.reportTimeout(1, time.Minute)
	if !strings.Contains(out.String(), "shorter session timeout") {
		t.Errorf("logged %q", out.String())
	}
}
