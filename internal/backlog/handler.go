package backlog

import (
	"cmp"
	"context"
	"log/slog"
)

// Logger returns a logger whose lines the queue writes to l. If l is nil, it writes them to the logger that is
// slog's default at the moment of the call. A nil Queue writes them at once, on the caller's goroutine.
//
// A line has the time and the place in the source of the call. If lines were dropped, a line with their number
// takes their place. A panic of the program's handler ends the program, as on any goroutine without a
// recovery.
func (q *Queue) Logger(l *slog.Logger) *slog.Logger {
	target := func() slog.Handler { return cmp.Or(l, slog.Default()).Handler() }
	if q == nil {
		return slog.New(target())
	}
	return slog.New(handler{q, target})
}

// handler implements slog.Handler.
type handler struct {
	queue *Queue
	to    func() slog.Handler
}

// Enabled implements slog.Handler. It asks the program's handler on the caller's goroutine: slog calls
// Enabled before it makes a line, and handlers only compare levels there.
func (h handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.to().Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	to := h.to()
	r = r.Clone() // the caller may add to its own
	h.queue.Add(func() {
		_ = to.Handle(ctx, r) // slog's Logger ignores this error, too
	}, func(n uint64) {
		slog.New(to).WarnContext(ctx, "zklock: the log has a gap: its handler did not take lines in time", "dropped", n)
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.queue, func() slog.Handler { return h.to().WithAttrs(attrs) }}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.queue, func() slog.Handler { return h.to().WithGroup(name) }}
}
