package cli

import (
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/zklock/go-zklock/internal/backlog"
	"github.com/zklock/go-zklock/internal/operator"
)

// messages writes lines to standard error from a goroutine of its own. A reader that pauses,
// such as a pager, blocks that goroutine only, and not the one that must act when the lock is
// lost. Lines that do not fit into the queue are dropped, and a line has their number.
type messages struct {
	w     io.Writer
	lines backlog.Queue
	least slog.LevelVar // of what logger prints
}

func newMessages(w io.Writer) *messages {
	m := &messages{w: w}
	m.least.Set(slog.LevelWarn)
	return m
}

// printf writes a line.
func (m *messages) printf(format string, args ...any) {
	_, _ = m.Write([]byte("zklock: " + operator.Printable(fmt.Sprintf(format, args...)) + "\n"))
}

// printNow is printf, and waits until the line was written, but no longer than soon.
func (m *messages) printNow(format string, args ...any) {
	m.printf(format, args...)
	m.lines.Flush(soon)
}

// soon is how long a reader may take before a program goes on that is about to be stopped.
const soon = 100 * time.Millisecond

// Write implements io.Writer for a logger. It never blocks. All messages go this way, and none shows the password
// of a URL that stands in the wrong place of the command line.
func (m *messages) Write(p []byte) (int, error) {
	text := redact(string(p))
	m.lines.Add(func() { _, _ = io.WriteString(m.w, text) },
		func(n uint64) {
			_, _ = fmt.Fprintf(m.w, "zklock: %d messages are missing here, since standard error took none in time\n", n)
		})
	return len(p), nil
}

// close waits until all lines have been written, but no longer than a second.
func (m *messages) close() { m.lines.Flush(backlog.Patience) }

// logger returns a logger for package zklock. It prints warnings and errors.
func (m *messages) logger() *slog.Logger { return m.loggerFrom(&m.least) }

// mute ends what logger prints: from here on the program says itself what happens.
func (m *messages) mute() { m.least.Set(slog.LevelError + 1) }

// loggerFrom returns a logger that prints what has that level or a higher one.
func (m *messages) loggerFrom(level slog.Leveler) *slog.Logger {
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
