package zkdriver

import (
	"fmt"
	"log/slog"
	"strings"
)

// loggerOf returns the logger of a connector: the one of its URL, or else slog's
// default logger, so that a warning is never lost.
func loggerOf(l *slog.Logger) *slog.Logger {
	if l == nil {
		return slog.Default()
	}
	return l
}

// logger passes the client's messages on at debug level. Whatever matters in them
// reaches the user as an error or a state.
type logger struct{ to *slog.Logger }

// Printf implements zk.Logger.
func (l logger) Printf(format string, args ...any) {
	loggerOf(l.to).Debug("zkdriver: " + strings.TrimPrefix(fmt.Sprintf(format, args...), "zk: "))
}
