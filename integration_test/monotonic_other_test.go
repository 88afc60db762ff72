//go:build !linux

package integration_test

import "time"

// monotonic reads a clock that all processes of this machine share, in nanoseconds. Here it
// is the wall clock: the standard library does not offer a better one.
func monotonic() int64 { return time.Now().UnixNano() }
