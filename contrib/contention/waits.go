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
	calls stack
	class string
	parts []part // guarded by waits.mu; at least one
}

// part is the time of a wait during which one contender was ahead, until the next part begins.
type part struct {
	began  time.Time
	holder string
}

// maxParts is how many parts a wait has at most. The last one then has the rest of the wait.
const maxParts = 32

// waits adds up waits. It never forgets a wait: beyond maxSamples, they are added to samples that
// say less. It reads the clock with mu locked, and changes no part that a snapshot may have seen:
// so the totals only grow.
type waits struct {
	mu      sync.Mutex
	totals  map[sample]total   // guarded by mu
	running map[*wait]struct{} // guarded by mu
}

// begin begins a wait.
func (w *waits) begin(one *wait, holder string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one.parts = []part{{time.Now(), holder}}
	if w.running == nil {
		w.running, w.totals = make(map[*wait]struct{}), make(map[sample]total)
	}
	w.running[one] = struct{}{}
}

// goOn begins the next part of a wait, if another contender is ahead, or more is known of it.
func (w *waits) goOn(one *wait, holder string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(one.parts); one.parts[n-1].holder != holder && n < maxParts {
		one.parts = append(one.parts, part{time.Now(), holder})
	}
}

// end ends a wait.
func (w *waits) end(one *wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, one)
	one.addTo(w.totals, time.Now())
}

// addTo adds a wait until now to the totals. It counts once, for the contender that was ahead
// when it began.
func (one *wait) addTo(totals map[sample]total, now time.Time) {
	if now.Sub(one.parts[0].began) < threshold {
		return
	}
	for i, p := range one.parts {
		ended, count := now, int64(0)
		if i == 0 {
			count = 1
		}
		if i+1 < len(one.parts) {
			ended = one.parts[i+1].began
		}
		if delay := ended.Sub(p.began); delay > 0 || count > 0 {
			add(totals, sample{one.calls, one.class, p.holder}, total{count, delay})
		}
	}
}

// add adds to the total of a sample, or to one that says less if there are too many.
func add(totals map[sample]total, s sample, more total) {
	t, known := totals[s]
	if !known && len(totals) >= maxSamples/2 {
		s.class, s.holder = others, ""
		if t, known = totals[s]; !known && len(totals) >= maxSamples {
			s.calls = stack{}
			t = totals[s]
		}
	}
	totals[s] = total{t.count + more.count, t.delay + more.delay}
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
	now := time.Now()
	for one := range w.running {
		one.addTo(totals, now)
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
