package contention

import (
	"sync"
	"time"
)

// threshold is the shortest wait that is in the profile.
const threshold = time.Millisecond

// maxSamples is how many samples are kept at most.
const maxSamples = 1 << 15

// sample says what a wait was for: the samples of waits that have all of this in common are one.
type sample struct {
	calls         stack // zero in the sample of all further call sites
	class, holder string
}

// total is the value of a sample.
type total struct {
	count int64
	delay time.Duration
}

// wait is a wait that has not ended.
type wait struct {
	sample // guarded by waits.mu, since its holder may change
	began  time.Time
	node   string // guarded by waits.mu; the queue node of a holder that is not described yet, else ""
}

// waits adds up waits. It never forgets a wait: beyond maxSamples, they are added to samples that
// say less.
type waits struct {
	mu      sync.Mutex
	totals  map[sample]total   // guarded by mu
	running map[*wait]struct{} // guarded by mu
}

// begin begins a wait.
func (w *waits) begin(s sample, node string) *wait {
	one := &wait{s, time.Now(), node}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running == nil {
		w.running, w.totals = make(map[*wait]struct{}), make(map[sample]total)
	}
	w.running[one] = struct{}{}
	return one
}

// describe says which acquisition has a queue node, if that was not known when the wait began.
func (w *waits) describe(one *wait, node, holder string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one.node == node && node != "" {
		one.holder, one.node = holder, ""
	}
}

// end ends a wait.
func (w *waits) end(one *wait) {
	delay := time.Since(one.began)
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, one)
	add(w.totals, one.sample, delay)
}

// add adds a wait to the totals.
func add(totals map[sample]total, s sample, delay time.Duration) {
	if delay < threshold {
		return
	}
	t, known := totals[s]
	if !known && len(totals) >= maxSamples/2 {
		s.class, s.holder = others, ""
		if t, known = totals[s]; !known && len(totals) >= maxSamples {
			s.calls = stack{}
			t = totals[s]
		}
	}
	totals[s] = total{t.count + 1, t.delay + delay}
}

// others is the class of the samples that say less because there are too many.
const others = "(other classes)"

// snapshot returns the totals so far, with the waits that have not ended.
func (w *waits) snapshot() map[sample]total {
	w.mu.Lock()
	defer w.mu.Unlock()
	totals := make(map[sample]total, len(w.totals)+len(w.running))
	for s, t := range w.totals {
		totals[s] = t
	}
	for one := range w.running {
		add(totals, one.sample, time.Since(one.began))
	}
	return totals
}

// since subtracts an earlier snapshot from a later one.
func since(earlier, later map[sample]total) map[sample]total {
	grown := make(map[sample]total)
	for s, t := range later {
		before := earlier[s]
		if t != before {
			grown[s] = total{t.count - before.count, t.delay - before.delay}
		}
	}
	return grown
}
