//go:build !linux

package lease

import "time"

// suspendGrowth returns 0 on systems other than Linux. There either the monotonic clock
// already includes suspensions (Windows), or the standard library does not report them
// (macOS).
func suspendGrowth() time.Duration { return 0 }
