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
	// time.Now reads one clock after the other. A busy machine may interrupt it in between, or between two
	// calls here, for milliseconds. So both are tried often.
	const tries = 1000
	rested, noticed := 0, 0
	for range tries {
		Now()
		if !asks() {
			rested++
		}
		askedSkew.Add(int64(2 * maxSkew))
		if asks() {
			noticed++
		}
		askedSkew.Add(int64(time.Hour)) // no interruption takes that long
		if !asks() {
			t.Fatal("Now does not ask after the wall clock has moved by an hour")
		}
	}
	if rested == 0 {
		t.Error("Now asks each time")
	}
	if noticed < tries*9/10 {
		t.Errorf("Now asked in %d of %d cases after the wall clock had moved", noticed, tries)
	}
	askedAt.Store(int64(time.Since(start)) + int64(time.Hour)) // as after a bubble with a virtual clock
	if !asks() {
		t.Error("Now does not ask when time has gone back")
	}
}
