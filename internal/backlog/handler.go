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
	program := func() slog.Handler { return cmp.Or(l, slog.Default()).Handler() }
	if q == nil {
		return slog.New(program())
	}
	return slog.New(handler{q, program, func(to slog.Handler) slog.Handler { return to }})
}

// handler implements slog.Handler. All methods of the program's handler are called by the queue's goroutine, since a handler
// may wait for a mutex in each of them, which its Handle holds while it waits for the log.
type handler struct {
	queue   *Queue
	program func() slog.Handler             // the program's
	with    func(slog.Handler) slog.Handler // adds the attributes and groups of the logger
}

// Enabled implements slog.Handler. Of the lines that the program's handler does not want, those of a log that is off cost
// nothing. Of the others there are few.
func (h handler) Enabled(context.Context, slog.Level) bool { return h.program() != slog.DiscardHandler }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	program := h.program()
	r = r.Clone() // the caller may add to its own
	h.queue.Add(func() {
		if to := h.with(program); to.Enabled(ctx, r.Level) {
			_ = to.Handle(ctx, r) // slog's Logger ignores this error, too
		}
	}, func(n uint64) {
		slog.New(h.with(program)).WarnContext(ctx, "zklock: the log has a gap: its handler did not take lines in time", "dropped", n)
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.queue, h.program, func(to slog.Handler) slog.Handler { return h.with(to).WithAttrs(attrs) }}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.queue, h.program, func(to slog.Handler) slog.Handler { return h.with(to).WithGroup(name) }}
}
