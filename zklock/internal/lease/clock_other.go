//go:build !linux

package lease

import "time"

// suspendGrowth is 0: elsewhere either the monotonic clock counts suspension
// already (Windows), or nothing in the standard library tells (macOS).
func suspendGrowth() time.Duration { return 0 }
