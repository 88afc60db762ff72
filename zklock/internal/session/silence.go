package session

import (
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// pauseText says that the heart is late, and that the machine was suspended while it waited. It
// returns "" if the heart is less late than least: then it was just busy.
func pauseText(late, suspended, least time.Duration) string {
	switch {
	case late < least:
		return ""
	case suspended > late/2:
		return fmt.Sprintf("the machine was suspended for %v", suspended.Truncate(100*time.Millisecond))
	}
	return fmt.Sprintf("this process did not run for at least %v (it was stopped, throttled or paused)", late.Truncate(100*time.Millisecond))
}

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
