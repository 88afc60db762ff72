package session

import (
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// errSessionTimeout means that the ensemble has granted a session timeout that is too short.
var errSessionTimeout = errs.Case(errs.ErrSessionTimeout, "session timeout too short")

// errTickTime means that tick_time seems to be smaller than the servers' tickTime, by the
// session timeout that they have granted.
var errTickTime = errs.Case(errs.ErrSessionTimeout, "tick_time too small")

const (
	// A server grants no session timeout that is shorter than its minSessionTimeout, or
	// longer than its maxSessionTimeout. By default these are 2 and 20 of its ticks; an
	// operator can set them.
	minGrantTicks = 2
	maxGrantTicks = 20
)

// checkTimeout checks the session timeout that the ensemble has granted.
//
// If it is longer than the one asked for, it is the servers' minSessionTimeout. By default
// that is two of their ticks, and then tick_time is too small: zklock asks for at least
// three times tick_time, so two ticks of tick_time would not be longer. Or an operator has
// set a longer minSessionTimeout, which the client cannot find out. A tick_time that is too
// small makes leases outlast their sessions, so both cases are an error. In the second case
// the operator can set session_timeout to at least the minimum: then the grant is not
// longer, and says nothing about the ticks.
//
// If it is shorter, it is the servers' maxSessionTimeout. Operators often raise that, so it
// says nothing about the ticks.
func (c *Settings) checkTimeout(granted time.Duration) error {
	if tick := granted / minGrantTicks; granted > c.SessionTimeout {
		return fmt.Errorf("%w: the ensemble granted %v, zklock asked for %v: either its servers' tickTime is %v, and tick_time=%v has to be at least that; "+
			"or an operator has set their minSessionTimeout, and session_timeout has to be at least %v",
			errTickTime, granted, c.SessionTimeout, tick, c.TickTime, granted)
	}
	if err := c.CheckTimeout(granted, "the servers' maxSessionTimeout"); err != nil {
		return fmt.Errorf("%w: the ensemble granted %v, zklock asked for %v: %w", errSessionTimeout, granted, c.SessionTimeout, err)
	}
	return nil
}

// reportTimeout logs that a session has a shorter timeout than was asked for. Locks work
// with that.
func (c *Settings) reportTimeout(session int64, granted time.Duration) {
	asked := c.SessionTimeout.Truncate(time.Millisecond) // the protocol's unit
	if granted >= asked {
		return
	}
	advice := "it is the servers' maxSessionTimeout: raise that, or ask for less with session_timeout"
	if tick := granted / maxGrantTicks; c.TickTime < tick {
		advice = fmt.Sprintf("%s; unless an operator has set it, the servers' tickTime is %v, and tick_time=%v is too small", advice, tick, c.TickTime)
	}
	c.Logger.Warn("zklock: the ensemble granted a shorter session timeout than was asked for",
		"asked", asked, "granted", granted, "session", HexID(session), "advice", advice)
}
