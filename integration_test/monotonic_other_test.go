//go:build !linux

package integration_test

import "time"

// monotonic reads a clock that all processes of this machine share, in
// nanoseconds: the wall clock, where the standard library offers no better one.
func monotonic() int64 { return time.Now().UnixNano() }
