//go:build !linux

package sessiondir

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
)

// process identifies a process of a machine. What that takes is known on Linux only.
type process struct{}

// errSystem is why the package does nothing here.
var errSystem = fmt.Errorf("session directories work on Linux only, and this is %s: leave session_dir out", runtime.GOOS)

// Open returns c without a path, or with an optional one, else an error; then it closes c.
func Open(c driver.Connector, s Settings) (driver.Connector, error) {
	if s.Path == "" || strings.HasPrefix(s.Path, Optional) {
		return c, nil
	}
	_ = c.Close()
	return nil, errSystem
}

// Reap returns an error.
func Reap(context.Context, string, bool, Opener, func() *slog.Logger) (int, error) {
	return 0, errSystem
}

// Held returns nothing: no session has a file.
func Held() ([]*os.File, error) { return nil, nil }

// EndHeld has nothing to end.
func EndHeld(context.Context, []*os.File, Opener, func() *slog.Logger) {}
