package zklock

import (
	"time"

	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// WithJitter replaces the function that varies the length of pauses, for repeatable runs.
func WithJitter(f func(time.Duration) time.Duration) Option {
	return openOption(func(c *Client) { c.cfg.Jitter = f })
}

// WithKeepAfter replaces the number of uses in a row that make the client keep a name.
func WithKeepAfter(uses int) Option {
	return openOption(func(c *Client) { c.cfg.KeepAfter = uses })
}

// Suspend makes every client of the process believe that the machine has been suspended
// for another d: the clock that leases are measured by jumps forward.
func Suspend(d time.Duration) { lease.AddSuspended(d) }
