package sessiondir

import (
	"log/slog"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Settings are those of [Open].
type Settings struct {
	Path      string        // of the directory, which is made if it is missing; "" for none
	URL       driver.URL    // of the connector
	LossDelay time.Duration // passes between the death of a process and the end of its sessions
	Log       func() *slog.Logger
	Reaped    func() // called after the end of each session of another process; may be nil
}

// Opener returns a connector for an ensemble that a file names.
type Opener func(Ensemble) (driver.Connector, error)
