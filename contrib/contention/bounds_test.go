package contention_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/contrib/contention"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
)

// maxSamples is how many samples a profile has at most, but for one of all further call sites.
const maxSamples = 1 << 15

// site calls f by one of 2^bits call stacks.
func site(i, bits int, f func()) {
	switch {
	case bits == 0:
		f()
	case i&1 == 0:
		site(i>>1, bits-1, f)
	default:
		site(i>>1, bits-1, f)
	}
}

// After many names, each with a class of its own, each of ten thousand call sites still has a
// sample. After many call sites, the samples are bounded. No wait is missing in the sums.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := contention.New(contention.WithClass(func(name string) string { return name }))
		h := p.Hooks()
		waits := int64(0)
		var ends []func(zklock.WaitResult)
		wait := func(name string) {
			_, end := h.Wait(context.Background(), zklock.WaitEvent{Name: name})
			ends = append(ends, end)
			waits++
		}
		samples := func() (n int, others int64) {
			time.Sleep(time.Millisecond)
			for _, end := range ends {
				end(zklock.WaitResult{})
			}
			ends = nil
			n, sum, others := p.Samples()
			if want := [2]int64{waits, waits * int64(time.Millisecond)}; sum != want {
				t.Errorf("the samples add up to %v, want %v", sum, want)
			}
			return n, others
		}
		before := heap()
		for i := range long.Count(t, "ZKLOCK_NAMES", 20_000, 1_000_000) {
			wait(fmt.Sprint("name", i))
		}
		if n, others := samples(); n != maxSamples/2+1 || others != 0 {
			t.Errorf("after many names, there are %d samples and %d waits of other call sites, want %d and none", n, others, maxSamples/2+1)
		}
		for i := range 10_000 {
			site(i, 14, func() { wait("orders/42") })
		}
		if n, others := samples(); n != maxSamples/2+1+10_000 || others != 0 {
			t.Errorf("after 10,000 call sites, there are %d samples and %d waits of others, want %d and none", n, others, maxSamples/2+1+10_000)
		}
		for i := range 1 << 14 {
			site(i, 15, func() { wait("orders/42") })
		}
		if n, others := samples(); n != maxSamples+1 || others != 1<<14-(maxSamples/2-1-10_000) {
			t.Errorf("after too many call sites, there are %d samples and %d waits of others", n, others)
		}
		t.Logf("%d waits take %d KiB", waits, (heap()-before)>>10)
		runtime.KeepAlive(p)
	})
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
