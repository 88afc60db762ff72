package zkdriver

import (
	"fmt"
	"log/slog"
	"strings"
)

// logger hands the client's messages to the default slog logger at debug
// level, where nobody sees them who did not ask. Whatever matters of them
// reaches the user as an error or a state.
type logger struct{}

// Printf implements zk.Logger.
func (logger) Printf(format string, args ...any) {
	slog.Debug("zkdriver: " + strings.TrimPrefix(fmt.Sprintf(format, args...), "zk: "))
}
