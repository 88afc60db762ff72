package deadlock

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Of a look and of others that remove a registration, one does, whatever their order.
func TestRemoval(t *testing.T) {
	var r removal
	if !r.judge() || r.judge() {
		t.Error("want one judgement at a time")
	}
	if r.refute() || !r.judge() {
		t.Error("after a judgement that found nothing, the registration stays")
	}
	if r.begin() {
		t.Error("it was removed while the look did that")
	}
	if !r.refute() {
		t.Error("the look has not removed it, and what began meanwhile does not")
	}
	if r.begin() || r.judge() {
		t.Error("it was removed twice")
	}
	for range 1000 {
		var r removal
		var removals atomic.Int32
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if r.begin() {
					removals.Add(1)
				}
			})
		}
		all.Go(func() {
			if r.judge() && r.refute() {
				removals.Add(1)
			}
		})
		all.Wait()
		if n := removals.Load(); n != 1 {
			t.Fatalf("%d removals, want one", n)
		}
	}
	r = removal{}
	if r.judge(); r.begin() || r.confirm() {
		t.Error("the look has removed it for itself alone")
	}
	if r = (removal{}); !r.judge() || !r.confirm() || r.begin() {
		t.Error("the look has not removed it for itself alone")
	}
}
