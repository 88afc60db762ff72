package contention

import (
	"slices"
	"strconv"
	"sync"
	"testing"
)

// No total of a snapshot is less than in an earlier one, while waits go on behind another contender
// and end.
func TestTotalsOnlyGrow(t *testing.T) {
	var w waits
	all := make([]*wait, 2000)
	for i := range all {
		all[i] = &wait{class: strconv.Itoa(i)} // a sample of its own
		w.begin(all[i], "held by web")
		all[i].parts[0].began = all[i].parts[0].began.Add(-threshold)
	}
	var enders sync.WaitGroup
	for i, some := range slices.Collect(slices.Chunk(all, 50)) {
		enders.Go(func() {
			for _, one := range some {
				if i%2 == 0 {
					w.goOn(one, "held by shipping")
				} else {
					w.end(one)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { enders.Wait(); close(ended) }()
	before := w.snapshot()
	for over := false; !over; {
		select {
		case <-ended:
			over = true
		default:
		}
		later := w.snapshot()
		for s, grown := range since(before, later) {
			if grown.count < 0 || grown.delay < 0 {
				t.Errorf("%s, %s: the total has grown by %+v", s.class, s.holder, grown)
			}
		}
		before = later
	}
}
