package cli

import (
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/operator"
)

// messages writes lines to standard error from a goroutine of its own. A reader that pauses,
// such as a pager, blocks that goroutine only, and not the one that must act when the lock is
// lost. Lines that do not fit into the buffer are dropped.
type messages struct {
	lines chan line
	done  chan struct{} // closed when all lines have been written
	once  sync.Once
	mu    sync.Mutex
	ended bool // guarded by mu; lines is closed
}

// line is a line to write.
type line struct {
	text    string
	written chan struct{} // closed when it was written; nil if no goroutine waits for that
}

// buffered is how many lines wait at most.
const buffered = 256

// patience is how long the end of the program waits for a reader.
const patience = time.Second

func newMessages(w io.Writer) *messages {
	m := &messages{lines: make(chan line, buffered), done: make(chan struct{})}
	go func() {
		defer close(m.done)
		for l := range m.lines {
			_, _ = io.WriteString(w, l.text)
			if l.written != nil {
				close(l.written)
			}
		}
	}()
	return m
}

// printf writes a line.
func (m *messages) printf(format string, args ...any) {
	_, _ = m.Write([]byte("zklock: " + operator.Escape(fmt.Sprintf(format, args...)) + "\n"))
}

// printNow is printf, and waits until the line was written, but no longer than soon.
func (m *messages) printNow(format string, args ...any) {
	l := line{"zklock: " + operator.Escape(fmt.Sprintf(format, args...)) + "\n", make(chan struct{})}
	if !m.send(l) {
		return
	}
	select {
	case <-l.written:
	case <-time.After(soon):
	}
}

// soon is how long a reader may take before a program goes on that is about to be stopped.
const soon = 100 * time.Millisecond

// Write implements io.Writer for a logger. It never blocks.
func (m *messages) Write(p []byte) (int, error) {
	m.send(line{text: string(p)})
	return len(p), nil
}

// send hands a line to the goroutine that writes. It reports false if there is no room. All messages go
// this way, and none shows the password of a URL that stands in the wrong place of the command line.
func (m *messages) send(l line) bool {
	l.text = redact(l.text)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return false
	}
	select {
	case m.lines <- l:
		return true
	default:
		return false
	}
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
