package lease

import (
	"testing"
	"time"
)

// Now asks the system for its clocks if it has not done so for a while, or if the wall clock
// has moved against the monotonic one, as in a suspension.
func TestNowAsksForTheClocks(t *testing.T) {
	asks := func() bool {
		before := askedAt.Load()
		Now()
		return askedAt.Load() != before
	}
	askedAt.Store(int64(time.Since(start)) - 2*askEvery)
	if !asks() {
		t.Error("Now does not ask again after a while")
	}
	rested, noticed := false, true
	for range 1000 { // the machine may be too busy for two calls to be close together
		Now()
		rested = rested || !asks()
		askedSkew.Add(2 * maxSkew)
		noticed = noticed && asks()
	}
	if !rested {
		t.Error("Now asks each time")
	}
	if !noticed {
		t.Error("Now does not ask after the wall clock has moved")
	}
	askedAt.Store(int64(time.Since(start)) + int64(time.Hour)) // as after a bubble with a virtual clock
	if !asks() {
		t.Error("Now does not ask when time has gone back")
	}
}
