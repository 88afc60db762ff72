package place

import (
	"strconv"
	"testing"
	"time"
)

// TestDoubtsAreBounded: the names that are listed next stay, and a name that is renewed stays once.
func TestDoubtsAreBounded(t *testing.T) {
	var ds doubts
	for range 2 {
		for i := range maxDoubts {
			ds.addLocked(strconv.Itoa(i), false, time.Second, time.Minute)
		}
	}
	if n, m := len(ds.byPath), ds.byNext.Len(); n != maxDoubts || m != maxDoubts {
		t.Fatalf("%d and %d names, want %d", n, m, maxDoubts)
	}
	ds.addLocked("now", true, time.Second, time.Minute)
	if n, m := len(ds.byPath), ds.byNext.Len(); n != maxDoubts || m != maxDoubts {
		t.Errorf("%d and %d names, want %d", n, m, maxDoubts)
	}
	if first := ds.byNext.Front().Value.(*doubt).path; first != "now" || ds.byPath["now"] != ds.byNext.Front() || ds.byPath["0"] == nil || ds.byPath[strconv.Itoa(maxDoubts-1)] != nil {
		t.Errorf("%q is listed first", first)
	}
}
