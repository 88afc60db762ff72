package session

import (
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// silentOf returns what driver.Silencer says, if a session implements that.
func silentOf(ds driver.Session) time.Duration {
	for {
		switch x := ds.(type) {
		case driver.Silencer:
			return x.Silent()
		case interface{ Unwrap() driver.Session }:
			ds = x.Unwrap()
		default:
			return 0
		}
	}
}

// departure is why a session has lost its connection.
type departure struct {
	server string
	silent time.Duration // for how long the server had not answered when the session left it; 0: another reason
}

// log writes that the session is connected again, to the server now, after d.
func (l departure) log(set *Settings, id int64, now string, d time.Duration) {
	if l.silent > 0 {
		set.Log().Warn(fmt.Sprintf("zklock: left %s, silent for %v; no lock was lost", l.server, l.silent.Round(100*time.Millisecond)), "session", HexID(id), "server", now)
		return
	}
	set.Log().Warn("zklock: connected again, no lock was lost", "session", HexID(id), "disconnected", d.Round(time.Millisecond))
}
