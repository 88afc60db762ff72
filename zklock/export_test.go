package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// WithJitter replaces what pauses are spread by, for runs that have to repeat
// themselves.
func WithJitter(f func(time.Duration) time.Duration) Option {
	return openOption(func(c *config) { c.Jitter = f })
}

// Suspend makes every client of the process believe that the machine has been
// suspended for another d: the clock that leases are counted by jumps.
func Suspend(d time.Duration) { lease.AddSuspended(d) }
