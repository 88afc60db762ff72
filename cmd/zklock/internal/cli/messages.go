package cli

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// messages writes lines to standard error from a goroutine of its own. A reader that pauses,
// such as a pager, blocks that goroutine only, and not the one that must act when the lock is
// lost. Lines that do not fit into the buffer are dropped.
type messages struct {
	lines chan string
	done  chan struct{} // closed when all lines have been written
	once  sync.Once
	mu    sync.Mutex
	ended bool // guarded by mu; lines is closed
}

// buffered is how many lines wait at most.
const buffered = 256

// patience is how long the end of the program waits for a reader.
const patience = time.Second

func newMessages(w io.Writer) *messages {
	m := &messages{lines: make(chan string, buffered), done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for line := range m.lines {
			_, _ = io.WriteString(w, line)
		}
	}()
	return m
}

// printf writes a line.
func (m *messages) printf(format string, args ...any) {
	_, _ = m.Write([]byte("zklock: " + escape(fmt.Sprintf(format, args...)) + "\n"))
}

// Write implements io.Writer for a logger. It never blocks.
func (m *messages) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ended {
		select {
		case m.lines <- string(p):
		default:
		}
	}
	return len(p), nil
}

// close waits until all lines have been written, but no longer than patience.
func (m *messages) close() {
	m.once.Do(func() {
		m.mu.Lock()
		m.ended = true
		close(m.lines)
		m.mu.Unlock()
	})
	select {
	case <-m.done:
	case <-time.After(patience):
	}
}

// logger returns a logger for package zklock. It prints warnings and errors.
func (m *messages) logger() *slog.Logger { return m.loggerFrom(slog.LevelWarn) }

// loggerFrom returns a logger that prints what has that level or a higher one.
func (m *messages) loggerFrom(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(m, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
				return slog.Attr{}
			}
			return a
		},
	}))
}
