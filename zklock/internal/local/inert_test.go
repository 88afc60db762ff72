package local

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// timed is a driver's session that only knows its session timeout, for session.Inert.
type timed struct {
	driver.Session
	timeout time.Duration
}

func (s timed) Timeout() time.Duration { return s.timeout }
