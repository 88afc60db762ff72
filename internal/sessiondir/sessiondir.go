package sessiondir

import (
	"log/slog"
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

// Opener returns a connector for an ensemble that a file names.
type Opener func(Ensemble) (driver.Connector, error)
