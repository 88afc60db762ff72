package session

import (
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// errSessionTimeout is matched by the error about a session timeout that the
// ensemble made too short.
var errSessionTimeout = errors.New("session timeout too short")

// errTickTime is matched by the error about a tick_time that the ensemble has shown
// to be too small.
var errTickTime = errors.New("tick_time too small")

const (
	// A server grants no session timeout shorter than its minSessionTimeout, or
	// longer than its maxSessionTimeout. They are so many of its ticks, unless its
	// operator has set them.
	minGrantTicks = 2
	maxGrantTicks = 20
)

// checkTimeout looks at what the ensemble granted.
//
// More than was asked for is the servers' minSessionTimeout, and so two of their
// ticks, unless an operator has set it to more. That cannot be told from here, and a
// tick_time that is too small makes leases outlast their sessions: so it is an
// error. An operator who did set it has a way round: with a session timeout of at
// least the minimum nothing is known of the ticks. What was asked for is three times
// tick_time or more, so a grant of more is never two of the ticks that tick_time says.
//
// Less than was asked for is the servers' maxSessionTimeout, which operators often
// raise. That proves nothing.
func (c *Settings) checkTimeout(granted time.Duration) error {
	if tick := granted / minGrantTicks; granted > c.SessionTimeout {
		return fmt.Errorf("%w: the ensemble granted %v, asked for were %v: either its servers' tickTime is %v, and tick_time=%v has to be at least that; "+
			"or an operator has set their minSessionTimeout, and session_timeout has to be at least %v",
			errTickTime, granted, c.SessionTimeout, tick, c.TickTime, granted)
	}
	if granted >= MinTicks*c.TickTime {
		if err := c.LossDelayFits(granted); err != nil {
			return fmt.Errorf("%w: the ensemble granted %v, asked for were %v: %w; raise the servers' maxSessionTimeout", errSessionTimeout, granted, c.SessionTimeout, err)
		}
		return nil
	}
	return fmt.Errorf("%w: the ensemble granted %v, asked for were %v, and at least %d times tick_time=%v are needed; raise the servers' maxSessionTimeout, or set tick_time to the servers' tickTime if that is smaller",
		errSessionTimeout, granted, c.SessionTimeout, MinTicks, c.TickTime)
}

// reportTimeout logs that a session has a shorter timeout than was asked for, which
// locks can work with. Without WithLogger it goes to slog's default logger:
// otherwise the operator would not know.
func (c *Settings) reportTimeout(session int64, granted time.Duration) {
	asked := c.SessionTimeout.Truncate(time.Millisecond) // the protocol knows no less
	if granted >= asked {
		return
	}
	advice := "it is the servers' maxSessionTimeout: raise that, or ask for less with session_timeout"
	if tick := granted / maxGrantTicks; c.TickTime < tick {
		advice = fmt.Sprintf("%s; unless an operator has set it, the servers' tickTime is %v, and tick_time=%v is too small", advice, tick, c.TickTime)
	}
	logger := c.DriverLogger
	if logger == nil {
		logger = slog.Default()
	}
	logger.Warn("zklock: the ensemble granted a shorter session timeout than was asked for",
		"asked", asked, "granted", granted, "session", fmt.Sprintf("%#x", session), "advice", advice)
}
