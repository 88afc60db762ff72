package zklock

import (
	"context"
	"log/slog"
)

// defaultLogger is the logger of clients that were opened without WithLogger. It writes
// warnings and errors to the logger that is slog's default at that moment, which a program
// may set after it has opened its clients.
var defaultLogger = slog.New(defaultHandler{})

// defaultHandler is the handler of defaultLogger. It implements slog.Handler.
type defaultHandler struct{}

func (defaultHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && slog.Default().Enabled(ctx, level)
}

func (defaultHandler) Handle(ctx context.Context, r slog.Record) error {
	return slog.Default().Handler().Handle(ctx, r)
}

func (defaultHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return slog.Default().Handler().WithAttrs(attrs)
}

func (defaultHandler) WithGroup(name string) slog.Handler {
	return slog.Default().Handler().WithGroup(name)
}
