package sessiondir

import (
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Settings are those of [Open].
type Settings struct {
	Path      string        // of the directory, which is made if it is missing; "" for none; see also Optional
	URL       driver.URL    // of the connector
	LossDelay time.Duration // passes between the death of a process and the end of its sessions
	Log       func() *slog.Logger
	Reaped    func() // called after the end of each session of another process; may be nil
}

// Optional in front of a path means that what the directory has to offer is wanted only if it is
// usable: nothing fails because of it, and nothing is logged.
const Optional = "-"

// CheckPath refuses a URL in place of the directory's path, also one that lacks its scheme: later errors
// show the path, and so the password. The path of a directory may have an @ in it, as in /run/shop@1.
func CheckPath(path string) error {
	at := strings.LastIndexByte(path, '@')
	isAbsolute := strings.HasPrefix(strings.TrimPrefix(path, Optional), "/")
	if strings.Contains(path, "://") || at >= 0 && (!isAbsolute || strings.Contains(path[:at], ":")) {
		return errors.New("want the path of a directory (not shown: it may have a password in it)")
	}
	return nil
}

// Opener returns a connector for an ensemble that a file names.
type Opener func(Ensemble) (driver.Connector, error)
