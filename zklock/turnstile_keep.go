package zklock

import "github.com/zklock/go-zklock/zklock/internal/place"

// keepLocked keeps the place of a hold that is over, if no goroutine of this process wants
// the name. It returns false if the place has to leave ZooKeeper's queue. The caller calls
// kept.settle with the other results when mu is not held any more.
func (t *turnstile) keepLocked(h *hold) (oldest *standby, start, ok bool) {
	ts := t.turnstiles
	if ts.kept.keep == 0 || t.queue.Len() > 0 || t.leader != nil || t.holds > 0 || t.separateWriters.Load() > 0 {
		return nil, false, false
	}
	s := t.last
	if s == nil || s.place != h.place {
		s = &standby{keeper: t, place: h.place}
	}
	s.trace = h.Origin().Trace
	if !place.Keep(h.place, s, t) {
		return nil, false, false
	}
	if oldest, start, ok = ts.kept.add(s); !ok {
		h.place.EndHold(s)
		return nil, false, false
	}
	t.standby, t.last = s, s
	ts.keepUse(t)
	return oldest, start, true
}

// unkeepLocked ends the time of a standby. Its place is spent then.
func (t *turnstile) unkeepLocked(s *standby) {
	t.standby = nil
	t.turnstiles.kept.remove(s)
	s.place.EndHold(s)
}

// takeUpLocked grants a kept place to a request. If that is not possible, it returns the
// place for the request to begin with as the leader; nil for a try that needs another place.
func (t *turnstile) takeUpLocked(r *request) (granted bool, start *place.Place) {
	s := t.standby
	t.unkeepLocked(s)
	defer t.turnstiles.endKeepUse(t)
	switch passable, granted := t.grantLocked(s.place, r); {
	case granted:
		return true, nil
	case !passable && r.Try:
		// The try waits until the place is gone, and then looks at the queue.
		place.ReleaseKept(s.place)
		return false, nil
	}
	return false, s.place
}

// retire implements keeper. The delete is sent before the turnstile can be removed, so an
// acquisition that comes later sends its create behind it.
func (t *turnstile) retire(s *standby, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.standby != s {
		return
	}
	t.unkeepLocked(s)
	if !lost {
		place.ReleaseKept(s.place)
	}
	t.turnstiles.endKeepUse(t)
}

// Recalled implements place.Keeper. If no goroutine uses the place now, it leaves the queue.
// Otherwise the limits of hand-over count from now on, and others read of its holder.
func (t *turnstile) Recalled(p *place.Place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	place.Recall(p, !t.turnstiles.localContenders(t))
	if s := t.standby; s != nil && s.place == p {
		t.unkeepLocked(s)
		place.ReleaseKept(p)
		t.turnstiles.endKeepUse(t)
		return
	}
	if !t.shareForGoodLocked(p) {
		place.Describe(p, nil)
	}
}

// makeWay makes the places leave ZooKeeper's queue that this client keeps for the names of a
// request. The request takes a separate place, and would wait for them, or conflict with
// them. The deletes are sent before the request's create, which does not wait for them.
func (ts *turnstiles) makeWay(r *request) {
	for _, w := range r.Wants {
		ts.mu.Lock()
		t := ts.byPath[w.Path]
		ts.mu.Unlock()
		t.mu.Lock()
		s := t.standby
		t.mu.Unlock()
		if s != nil {
			t.retire(s, false)
		}
	}
}

// keepUse counts the use of a turnstile by its standby.
func (ts *turnstiles) keepUse(t *turnstile) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.countUsesLocked(t, 1, true)
}

// endKeepUse ends the use of a turnstile by its standby.
func (ts *turnstiles) endKeepUse(t *turnstile) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.countUsesLocked(t, -1, false)
}

// localContenders reports whether more than one goroutine of this process uses a name, apart
// from those that share a hold.
func (ts *turnstiles) localContenders(t *turnstile) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return t.uses > 1
}
