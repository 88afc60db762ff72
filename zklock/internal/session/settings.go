package session

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/zklock/go-zklock/internal/backlog"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// Settings are the settings of a pool and its sessions.
type Settings struct {
	Root           string        // the path of the root; all znodes of the client are below it
	SessionTimeout time.Duration // to ask for
	TickTime       time.Duration // at least that of the servers
	ConnectTimeout time.Duration
	LossDelay      time.Duration // by how much a lost lock ends before its session may expire

	PoolMaxSessions int
	PoolMaxLifetime time.Duration // 0: sessions are not replaced because of their age

	JuteMaxbuffer int // that of the servers; 0: their default

	Jitter func(time.Duration) time.Duration // the function Jitter, or another one for runs that must be repeatable
	Logger *slog.Logger                      // nil if the program has set none: see Log
	Lines  *backlog.Queue                    // of the client's log; nil in tests: the caller of Log writes its line itself

	Operation hook.Starter[Operation, error] // called around every request; may be nil
	Changed   func(Snapshot)                 // called when a session's state changes, and after each heartbeat; may be nil
}

// TryTimeout returns for how long a try goes on without a session or an answer of the ensemble. It
// is enough for a new session on an ensemble that works, and short enough that the tries of an outage
// do not pile up.
func (s *Settings) TryTimeout() time.Duration {
	return min(max(s.ConnectTimeout/4, time.Second), s.ConnectTimeout)
}

// Log returns the logger for warnings and errors: without Logger slog's default, which a program may
// set after it has opened its clients. No caller waits for the program's handler: a lock, or the end of a
// client, would wait for whatever reads the log.
func (s *Settings) Log() *slog.Logger { return s.Lines.Logger(s.Logger) }

// Operation describes a request to the ensemble, for hooks.
type Operation struct {
	Kind    string // its purpose
	Group   int    // the number of callers whose writes are in it
	Server  string // the server that it is sent to, as far as known
	Session int64  // the id of the session that it is sent on
}

// Snapshot describes a session, for hooks.
type Snapshot struct {
	ID     int64
	Server string // the server that it is connected to, as far as known
	State  driver.State
	Lease  time.Duration // how much of the lease is left; 0 if no place needs it
	Silent time.Duration // for how long the server had not answered when the session left it; 0 if it has not, or for another reason

	Forgotten bool  // the server that was silent answers on other connections
	Err       error // why the session has ended; nil if it has not
}

// minTicks is the number of ticks that a session timeout must have at least, so that a lease can
// be renewed in time: a proof is up to a tick, two heartbeats and their round trips old.
const minTicks = 3

// lease returns the lease of a session with a session timeout, before anything is proven.
func (c *Settings) lease(timeout time.Duration) lease.Lease {
	return lease.Lease{Timeout: timeout - c.LossDelay, Tick: c.TickTime}
}

// CheckTimeout returns an error if locks cannot work with a session timeout, asked for or granted:
// without loss_delay it must be at least minTicks and loss_delay, and leases must be long
// enough, as lease.Lease.Short says. setting is the one that makes it longer.
func (c *Settings) CheckTimeout(timeout time.Duration, setting string) error {
	short := func(timeout time.Duration) time.Duration {
		l := c.lease(timeout)
		return max(minTicks*c.TickTime-l.Timeout, c.LossDelay-l.Timeout, l.Short())
	}
	need := timeout
	for short(need) > 0 { // a longer timeout needs a longer lease, so one step is not enough
		need += short(need)
	}
	if need == timeout {
		return nil
	}
	l := c.lease(timeout)
	return fmt.Errorf("%v is too short for tick_time=%v and loss_delay=%v: leases get as short as %v, and it has to be at least %v; raise %s, or lower tick_time, if the servers' tickTime is smaller, or loss_delay",
		timeout, c.TickTime, c.LossDelay, l.LeastKept().Truncate(time.Millisecond), (need + time.Millisecond - 1).Truncate(time.Millisecond), setting)
}

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
// three times tick_time. Or an operator has set a longer minSessionTimeout, which the client
// cannot find out. A tick_time that is too small makes leases outlast their sessions, so both
// cases are an error. In the second case the operator can set session_timeout to at least the
// minimum.
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
	c.Log().Warn("zklock: the ensemble granted a shorter session timeout than was asked for",
		"asked", asked, "granted", granted, "session", HexID(session), "advice", advice)
}

// Jitter returns a random duration between half of d and d, so that many clients with the
// same trouble do not all try again at the same moment.
func Jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int64N(int64(d/2)+1))
}

// early draws a random part and returns a function: by how much, up to the part lease.Early, the next exchange
// of a heart is before the end of its period. So many clients that a quorum has answered at one
// moment do not stay in step.
func (c *Settings) early() func(period time.Duration) time.Duration {
	const whole = 1000
	part := 2*c.Jitter(whole) - whole // 0 to whole
	return func(period time.Duration) time.Duration { return period / lease.Early * part / whole }
}
