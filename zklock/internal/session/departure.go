package session

import (
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// silentOf returns what driver.Silencer says, if a session implements that.
func silentOf(ds driver.Session) (quiet time.Duration, forgotten bool) {
	for {
		switch x := ds.(type) {
		case driver.Silencer:
			return x.Silent()
		case interface{ Unwrap() driver.Session }:
			ds = x.Unwrap()
		default:
			return 0, false
		}
	}
}

// Departure is why a session has lost its connection, and where it went on.
type Departure struct {
	At       time.Time // when it was connected again
	From, To string    // servers

	Silent    time.Duration // for how long From had not answered when the session left it; 0: another reason
	Forgotten bool          // From answers on other connections
}

// String is what operators read; "" without a departure.
func (d Departure) String() string {
	if d.Silent == 0 {
		return ""
	}
	quiet := d.Silent.Round(100 * time.Millisecond)
	if d.Forgotten {
		return fmt.Sprintf("left a connection to %s, silent for %v while the server answers on others; no lock was lost", d.From, quiet)
	}
	return fmt.Sprintf("left %s, silent for %v; no lock was lost", d.From, quiet)
}

// log writes that the session is connected again after d.
func (d Departure) log(set *Settings, id int64, after time.Duration) {
	if d.Silent > 0 {
		set.Log().Warn("zklock: "+d.String(), "session", HexID(id), "server", d.To)
		return
	}
	set.Log().Warn("zklock: connected again, no lock was lost", "session", HexID(id), "disconnected", after.Round(time.Millisecond))
}

// departed keeps the newest departure from a silent server.
func (c *common) departed(d Departure) {
	if d.Silent > 0 {
		c.Departures.Add(1)
		c.departure.Store(&d)
	}
}

// Departure returns the newest departure from a silent server; the zero value if there was none.
func (c *common) Departure() Departure {
	if d := c.departure.Load(); d != nil {
		return *d
	}
	return Departure{}
}
