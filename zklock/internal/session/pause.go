package session

import (
	"fmt"
	"time"
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
