package inspect

import (
	"time"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

// leftFor is how long the page says that a session of its process has left a silent server.
const leftFor = 10 * time.Minute

// departure is the newest one of the page's client.
type departure struct{ zklock.Departure }

// New reports whether there was one, and it is worth a line.
func (d departure) New() bool { return time.Since(d.At) < leftFor }

// Since returns when it was.
func (d departure) Since() operator.Millis { return operator.MillisOf(d.At) }
