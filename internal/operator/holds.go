package operator

import (
	"sync"
	"time"
)

// Holds finds out since when contenders hold: ZooKeeper does not say, and their nodes say since when
// they have asked. It compares each look at a queue with the one before. A contender that waited, or
// was not there, in a look of a moment ago, and holds now, was granted the lock in between. The zero
// Holds is ready for use. It is safe for concurrent use.
type Holds struct {
	mu     sync.Mutex
	looks  map[string]look // guarded by mu; by name; only names with contenders
	rounds time.Time       // guarded by mu; when the newest full round began: names without a look were not in use then
}

// look is a queue as it was seen last.
type look struct {
	at    time.Time
	since map[string]Millis // since when the contenders hold, by their ID; 0: not known; waiting: not yet
}

// waiting says that a contender did not hold.
const waiting Millis = -1

// forgotten is how old a look is when it is of no use. End forgets earlier, but some rounds have no End.
const forgotten = 10 * time.Minute

// between is how far apart two looks may be, so that what happened in between has a time.
const between = 15 * time.Second

// see sets HeldSince of the contenders of a name that it knows from this look and earlier ones.
func (h *Holds) see(name string, queue []Contender) {
	if h == nil {
		return
	}
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	before, seen := h.looks[name]
	if !seen {
		before.at = h.rounds
	}
	near := !before.at.IsZero() && now.Sub(before.at) <= between
	after := look{at: now, since: make(map[string]Millis, len(queue))}
	for i := range queue {
		c := &queue[i]
		since, known := before.since[c.ID()]
		switch {
		case !c.Held:
			since = waiting
		case (!known || since == waiting) && near:
			since = MillisOf(now)
		case since == waiting:
			since = 0
		}
		after.since[c.ID()] = since
		c.HeldSince = max(since, 0)
	}
	if h.looks == nil {
		h.looks = make(map[string]look)
	}
	if h.looks[name] = after; len(queue) == 0 {
		delete(h.looks, name)
	}
}

// Begin begins a round: a look at all names, or some of them. It returns the time for End.
func (h *Holds) Begin() time.Time {
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(now.Add(-forgotten))
	return now
}

// End ends a round, which has seen all names that have been in use since it began. It forgets those that
// were not seen. Several rounds may be under way at the same time.
func (h *Holds) End(began time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rounds.Before(began) {
		h.rounds = began
	}
	h.forget(began)
}

// Unchanged says that the queues are as in the last looks at them until now: the caller has watched them.
func (h *Holds) Unchanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rounds = time.Now()
	for name, l := range h.looks {
		l.at = h.rounds
		h.looks[name] = l
	}
}

// forget forgets the looks before some time.
func (h *Holds) forget(before time.Time) {
	for name, l := range h.looks {
		if l.at.Before(before) {
			delete(h.looks, name)
		}
	}
}
