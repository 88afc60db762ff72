package corekit

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// StuckLog is a log behind a pipe that is full, and that no process reads: a call of its handler returns only
// after Read, whichever method is called, as with a handler that has one mutex for all.
type StuckLog struct {
	read  chan struct{} // closed by Read
	once  sync.Once
	mu    sync.Mutex
	lines bytes.Buffer // guarded by mu
}

// NewStuckLog returns a log that is stuck until the end of the test, or until Read.
func NewStuckLog(t *testing.T) *StuckLog {
	l := &StuckLog{read: make(chan struct{})}
	t.Cleanup(l.Read)
	return l
}

// Logger returns a logger of the log.
func (l *StuckLog) Logger() *slog.Logger {
	return slog.New(&stuckHandler{slog.NewTextHandler(l, nil), l})
}

// stuckHandler waits outside of the mutex of the handler that it embeds, so that a synctest bubble's time goes on.
type stuckHandler struct {
	slog.Handler
	log *StuckLog
}

// Enabled implements slog.Handler.
func (h *stuckHandler) Enabled(ctx context.Context, level slog.Level) bool {
	<-h.log.read
	return h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *stuckHandler) Handle(ctx context.Context, r slog.Record) error {
	<-h.log.read
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *stuckHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	<-h.log.read
	return &stuckHandler{h.Handler.WithAttrs(attrs), h.log}
}

// WithGroup implements slog.Handler.
func (h *stuckHandler) WithGroup(name string) slog.Handler {
	<-h.log.read
	return &stuckHandler{h.Handler.WithGroup(name), h.log}
}

// Write implements io.Writer.
func (l *StuckLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(p)
}

// Read lets all calls return, now and later.
func (l *StuckLog) Read() { l.once.Do(func() { close(l.read) }) }

// String returns what was written.
func (l *StuckLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.String()
}

// Returns fails a test if f has not returned after that time. Then it lets the log be read, so that the test
// ends. It reports whether f has returned in time.
func (l *StuckLog) Returns(t *testing.T, what string, limit time.Duration, f func()) bool {
	t.Helper()
	done, began := make(chan struct{}), time.Now()
	go func() { defer close(done); f() }()
	select {
	case <-done:
		return true
	case <-time.After(limit):
		t.Errorf("%s has not returned %v after it began, while the log was stuck", what, time.Since(began))
		l.Read()
		<-done
		return false
	}
}
