package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Times of the judge of circles.
const (
	simDeadlock = time.Second // deadlock_timeout of these runs

	// stableFor is how long a circle may last if no fault is under way.
	stableFor = simDeadlock + 12*time.Second

	// realWithin is the time before a victim's error in which its circle has to have existed.
	realWithin = time.Second

	// faultyWithin is the same if a fault was under way: a client looks for connect_timeout, and a removal
	// that is not confirmed holds its caller up for a second.
	faultyWithin = 6 * time.Second

	// staysFor is how long a registration may stay whose removal a fault has kept from its server: its
	// session lives for two timeouts at most, and what is applied late is applied by then.
	staysFor = 4 * usualTimeout
)

// seenWait is an acquisition as its caller sees it: from its call to its return.
type seenWait struct {
	label        string
	client       int
	modes        map[string]zklock.Mode
	carried      []*seenHold
	began, ended time.Time // ended is zero while it waits
}

// seenHold is a lock as its holder sees it.
type seenHold struct {
	client     int
	modes      map[string]zklock.Mode
	granted    time.Time
	downgraded time.Time // when it stopped to be exclusive
	releasing  time.Time // when its release was called, or it was lost
	released   time.Time // when its release has returned, or it was lost
}

// seenVictim is a wait that has failed because of a circle.
type seenVictim struct {
	wait  *seenWait
	at    time.Time
	names []string // the labels of the waits in the circle, sorted
}

// circleJudge knows what callers hold and wait for, from their calls and the returns of these alone. It
// judges each circle that the library reports, and finds those that it does not report.
type circleJudge struct {
	mu      sync.Mutex
	waits   map[string]*seenWait // guarded by mu; by label
	holds   map[*seenHold]bool   // guarded by mu; those not released
	changed map[string]time.Time // guarded by mu; when a hold of a name began or ended last
	victims []seenVictim         // guarded by mu
	faults  []span               // guarded by mu
	wrong   []string             // guarded by mu
	lines   []string             // guarded by mu; what callers did
	began   time.Time

	counts circleCounts // guarded by mu
}

// circleCounts are what runs have shown.
type circleCounts struct {
	nested  int // acquisitions that waited with a lock
	victims int
	longest int // the waits of the longest circle
	late    int // victims whose circle had ended, with a fault under way
	stays   int // victims of a circle with a registration that has outlasted its wait, after a fault
	overlap int // victims of a circle that has another victim of another circle in it
}

func (c *circleCounts) add(o circleCounts) {
	c.nested, c.victims, c.late, c.stays, c.overlap = c.nested+o.nested, c.victims+o.victims, c.late+o.late, c.stays+o.stays, c.overlap+o.overlap
	c.longest = max(c.longest, o.longest)
}

// span is a time in which a fault was under way, for a client or for all.
type span struct {
	client   int // -1: all
	from, to time.Time
}

const allClients = -1

func newCircleJudge() *circleJudge {
	return &circleJudge{waits: map[string]*seenWait{}, holds: map[*seenHold]bool{}, changed: map[string]time.Time{}, began: time.Now()}
}

func (j *circleJudge) noteLocked(format string, args ...any) {
	j.lines = append(j.lines, fmt.Sprintf("%10.4fs  %s", time.Since(j.began).Seconds(), fmt.Sprintf(format, args...)))
}

func (j *circleJudge) violateLocked(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	j.wrong = append(j.wrong, text)
	j.noteLocked("VIOLATION %s", text)
}

func (j *circleJudge) violate(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.violateLocked(format, args...)
}

// fault notes that a fault is under way from now on for a time.
func (j *circleJudge) fault(client int, d time.Duration, what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	j.faults = append(j.faults, span{client, now, now.Add(d)})
	j.noteLocked("FAULT client %d for %v: %s", client, d, what)
}

// faultyLocked reports whether a fault was under way for a client within a time before a moment. For
// allClients the faults of all clients count.
func (j *circleJudge) faultyLocked(client int, at time.Time, within time.Duration) bool {
	return slices.ContainsFunc(j.faults, func(s span) bool {
		return (client == allClients || s.client == allClients || s.client == client) && !s.from.After(at) && s.to.After(at.Add(-within))
	})
}

// calls notes that an acquisition is called.
func (j *circleJudge) calls(label string, client int, modes map[string]zklock.Mode, carried []*seenHold) *seenWait {
	j.mu.Lock()
	defer j.mu.Unlock()
	w := &seenWait{label: label, client: client, modes: modes, carried: slices.Clone(carried), began: time.Now()}
	j.waits[label] = w
	if len(carried) > 0 {
		j.counts.nested++
	}
	j.noteLocked("%s of client %d wants %v", label, client, modes)
	return w
}

// granted notes that an acquisition has returned a lock.
func (j *circleJudge) granted(w *seenWait) *seenHold {
	j.mu.Lock()
	defer j.mu.Unlock()
	w.ended = time.Now()
	h := &seenHold{client: w.client, modes: w.modes, granted: w.ended}
	j.holds[h] = true
	j.changedLocked(h)
	j.noteLocked("%s has its lock", w.label)
	return h
}

func (j *circleJudge) changedLocked(h *seenHold) {
	for name := range h.modes {
		j.changed[name] = time.Now()
	}
}

// downgraded notes that a lock is a reader's now.
func (j *circleJudge) downgraded(h *seenHold) {
	j.mu.Lock()
	defer j.mu.Unlock()
	h.downgraded = time.Now()
	j.changedLocked(h)
	j.noteLocked("downgraded %v", h.modes)
}

// releases notes that a lock's release is called, and goes that it has returned, or that the lock was lost.
func (j *circleJudge) releases(h *seenHold) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if h.releasing.IsZero() {
		h.releasing = time.Now()
	}
	j.changedLocked(h)
}

func (j *circleJudge) goes(h *seenHold, why string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if now := time.Now(); h.released.IsZero() {
		h.released = now
		if h.releasing.IsZero() {
			h.releasing = now
		}
		j.noteLocked("%s %v", why, h.modes)
	}
	delete(j.holds, h)
	j.changedLocked(h)
}

// failed notes that an acquisition has returned an error.
func (j *circleJudge) failed(w *seenWait, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w.ended = time.Now()
	j.noteLocked("%s: %v", w.label, err)
	var d *zklock.DeadlockError
	switch {
	case errors.As(err, &d):
		j.victimLocked(w, d)
	case errors.Is(err, zklock.ErrDeadlock):
		j.violateLocked("%s: an error of a deadlock without a circle: %v", w.label, err)
	}
}

// victimLocked judges the circle of an error: it was real, and no other wait of it has failed.
func (j *circleJudge) victimLocked(w *seenWait, d *zklock.DeadlockError) {
	now := time.Now()
	v := seenVictim{wait: w, at: now}
	j.counts.victims++
	j.counts.longest = max(j.counts.longest, len(d.Cycle))
	for i, l := range d.Cycle {
		v.names = append(v.names, l.Label)
		next := d.Cycle[(i+1)%len(d.Cycle)]
		if o := j.waits[l.Label]; o == nil || l.Waiting != next.Held || o.modes[l.Waiting] == 0 || i == 0 && o != w {
			j.violateLocked("%s: link %d of the circle names what was not so: %v", w.label, i, d)
			return
		}
	}
	slices.Sort(v.names)
	if j.realLocked(d, now.Add(-realWithin), now) {
		for _, o := range j.victims {
			switch {
			case slices.Equal(o.names, v.names) && j.faultyLocked(o.wait.client, now, faultyWithin):
				j.counts.stays++ // the removal of the first one's registration was not confirmed
			case slices.Equal(o.names, v.names):
				j.violateLocked("%s: the circle has failed a second wait, after %s: %v", w.label, o.wait.label, d)
			case slices.Contains(v.names, o.wait.label):
				j.counts.overlap++
			}
		}
	} else if j.faultyLocked(allClients, now, faultyWithin) && j.realLocked(d, now.Add(-faultyWithin), now) {
		j.counts.late++
	} else if j.stayedLocked(d, now) {
		j.counts.stays++
	} else {
		j.violateLocked("%s: the circle was not real within %v: %v", w.label, realWithin, d)
	}
	j.victims = append(j.victims, v)
}

// stayedLocked reports whether the circle can be of registrations that have outlasted their waits or holds
// because of a fault of their client.
func (j *circleJudge) stayedLocked(d *zklock.DeadlockError, now time.Time) bool {
	for i, l := range d.Cycle {
		o := j.waits[l.Label]
		over := earliest(o.ended, releasedOf(o, d.Cycle[i].Held))
		if !over.IsZero() && over.Before(now.Add(-realWithin)) && !j.faultyLocked(o.client, now, staysFor) {
			return false
		}
	}
	return j.faultyLocked(allClients, now, staysFor)
}

// earliest returns the earlier of two times that may be zero, for never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// carriedOf returns what a wait carries on a name; nil if it is a wait for several names and one of them.
func carriedOf(w *seenWait, name string) *seenHold {
	for _, h := range w.carried {
		if h.modes[name] != 0 {
			return h
		}
	}
	return nil
}

func releasedOf(w *seenWait, name string) time.Time {
	if h := carriedOf(w, name); h != nil {
		return h.released
	}
	return time.Time{}
}

// realLocked reports whether there was a moment between two at which each wait of a circle held what the
// one before it waited for.
func (j *circleJudge) realLocked(d *zklock.DeadlockError, from, to time.Time) bool {
	lo, hi := from, to
	within := func(began, ended time.Time) {
		if began.After(lo) {
			lo = began
		}
		if !ended.IsZero() && ended.Before(hi) {
			hi = ended
		}
	}
	for _, l := range d.Cycle {
		w := j.waits[l.Label]
		within(w.began, w.ended)
		if h := carriedOf(w, l.Held); h != nil {
			within(h.granted, h.released)
		} else if len(w.modes) < 2 || w.modes[l.Held] == 0 {
			return false
		}
	}
	for i, l := range d.Cycle {
		if lo.After(hi) {
			return false
		}
		next := j.waits[d.Cycle[(i+1)%len(d.Cycle)].Label]
		mode, since := next.modes[l.Waiting], time.Time{}
		if h := carriedOf(next, l.Waiting); h != nil {
			mode, since = h.modes[l.Waiting], h.downgraded
		}
		excludes := j.waits[l.Label].modes[l.Waiting] == zklock.Exclusive || mode == zklock.Exclusive && (since.IsZero() || !since.Before(lo))
		if !excludes && !j.writerWaitedLocked(l.Waiting, lo, hi) {
			return false
		}
	}
	return !lo.After(hi)
}

// writerWaitedLocked reports whether a writer waited for a name in a time: a reader that does not exclude
// the holder can stand behind it.
func (j *circleJudge) writerWaitedLocked(name string, from, to time.Time) bool {
	for _, w := range j.waits {
		if w.modes[name] == zklock.Exclusive && !w.began.After(to) && (w.ended.IsZero() || !w.ended.Before(from)) {
			return true
		}
	}
	return false
}

// observe looks for circles that have lasted too long. It returns the waits in them.
func (j *circleJudge) observe() {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	if j.faultyLocked(allClients, now, stableFor) {
		return
	}
	if stuck := j.stuckLocked(now.Add(-stableFor)); len(stuck) > 0 && len(j.wrong) == 0 {
		var labels []string
		for w := range stuck {
			labels = append(labels, w.label)
		}
		slices.Sort(labels)
		j.violateLocked("a circle has lasted for more than %v: it is among the waits of %s", stableFor, strings.Join(labels, " "))
	}
}

// stuckLocked returns the waits that have waited for each other since a time: the greatest set of waits each
// of which waits for a holder that is in the set, or, where a name has no holder that is in its way, for
// others of the set that wait for that name.
func (j *circleJudge) stuckLocked(since time.Time) map[*seenWait]bool {
	pending, in := []*seenWait{}, map[*seenWait]bool{}
	for _, w := range j.waits {
		if w.ended.IsZero() {
			pending = append(pending, w)
			if !w.began.After(since) {
				in[w] = true
			}
		}
	}
	for again := true; again; {
		again = false
		for w := range in {
			if !j.stuckAmongLocked(w, pending, in, since) {
				delete(in, w)
				again = true
			}
		}
	}
	return in
}

func (j *circleJudge) stuckAmongLocked(w *seenWait, pending []*seenWait, in map[*seenWait]bool, since time.Time) bool {
	waitsForHold, quiet := false, true
	for h := range j.holds {
		for name, mode := range w.modes {
			held := h.modes[name]
			if held != 0 && !h.downgraded.IsZero() {
				held = zklock.Shared
			}
			if held == 0 || mode != zklock.Exclusive && held != zklock.Exclusive {
				continue
			}
			waitsForHold = true
			if h.releasing.IsZero() && !h.granted.After(since) && slices.ContainsFunc(pending, func(o *seenWait) bool { return in[o] && slices.Contains(o.carried, h) }) {
				return true
			}
		}
	}
	for name := range w.modes {
		quiet = quiet && !j.changed[name].After(since)
	}
	if waitsForHold || !quiet {
		return false
	}
	some := false
	for _, o := range pending {
		for name, mode := range w.modes {
			if o != w && o.modes[name] != 0 && (mode == zklock.Exclusive || o.modes[name] == zklock.Exclusive) {
				if some = true; !in[o] {
					return false
				}
			}
		}
	}
	return some
}
