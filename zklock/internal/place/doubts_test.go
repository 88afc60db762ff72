package place

import (
	"strconv"
	"testing"
	"time"
)

// TestDoubtsAreBounded: the names that are listed next stay, and a name that is renewed stays once.
func TestDoubtsAreBounded(t *testing.T) {
	var ds doubts
	add := func(path string, now bool) {
		t.Helper()
		ds.addLocked(path, now, time.Second, time.Minute)
		listed := 0
		for i := range ds.byPause {
			listed += ds.byPause[i].Len()
		}
		if n := len(ds.byPath); n != listed || n > maxDoubts {
			t.Fatalf("%d and %d names, want at most %d", n, listed, maxDoubts)
		}
	}
	for range 2 {
		for i := range maxDoubts {
			add(strconv.Itoa(i), false)
		}
	}
	add("now", true)
	if first := ds.firstLocked(); first.Value.(*doubt).path != "now" || ds.byPath["now"] != first || ds.byPath["0"] == nil || ds.byPath[strconv.Itoa(maxDoubts-1)] != nil {
		t.Errorf("%+v is listed first", first.Value)
	}
	for i, path := range []string{"1", "2"} { // their horizons have passed
		x := ds.takeLocked(ds.byPath[path])
		x.pause += 1 + i
		ds.putLocked(x)
	}
	for _, path := range []string{"new", "newer"} {
		add(path, false)
	}
	if ds.byPath["2"] != nil || ds.byPath["1"] != nil || ds.byPath["new"] == nil || ds.byPath["newer"] == nil {
		t.Error("a new name has not replaced one that is listed rarely")
	}
	x := ds.takeLocked(ds.byPath["new"])
	x.pause = 3
	ds.putLocked(x)
	add("new", false)
	if x := ds.byPath["new"].Value.(*doubt); x.pause != 0 || time.Until(x.next) > time.Second {
		t.Errorf("a name that is renewed is listed as rarely as before: %+v", x)
	}
}
