package zklock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// turnstiles has a turnstile for each name that the client holds or waits for.
type turnstiles struct {
	*common
	pool  *session.Pool
	hooks observers

	kept kept

	closing context.Context         // ends, with cause ErrClosed, when the client acquires nothing more
	close   context.CancelCauseFunc // ends closing

	mu          sync.Mutex
	byPath      map[string]*turnstile // guarded by mu
	held        int                   // guarded by mu; how many holds there are
	unusedNames int                   // guarded by mu; how many turnstiles have a standby and no other use
	underway    map[*request]struct{} // guarded by mu; acquisitions under way
	idle        chan struct{}         // guarded by mu; if not nil, closed when byPath becomes empty
}

func (ts *turnstiles) init(c *common, p *session.Pool, hooks observers) {
	ts.common, ts.pool, ts.hooks = c, p, hooks
	ts.kept.pool, ts.kept.keep, ts.kept.max = p, c.cfg.keep, c.cfg.keepMax
	ts.byPath, ts.underway = make(map[string]*turnstile), make(map[*request]struct{})
	ts.closing, ts.close = context.WithCancelCause(context.Background())
}

// refuse makes all acquisitions fail with ErrClosed: those under way and later ones.
func (ts *turnstiles) refuse() {
	ts.close(errs.ErrClosed)
	ts.mu.Lock()
	waiting := slices.Collect(maps.Keys(ts.underway))
	ts.mu.Unlock()
	for _, r := range waiting {
		r.cancel(errs.ErrClosed)
	}
	ts.kept.close()
}

// unused returns a channel that is closed when no name is in use.
func (ts *turnstiles) unused() <-chan struct{} {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.idle == nil {
		ts.idle = make(chan struct{})
		if ts.held == 0 && len(ts.byPath) == 0 {
			close(ts.idle)
		}
	}
	return ts.idle
}

// inUse reports whether the client holds or waits for the name with this path.
func (ts *turnstiles) inUse(path string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.byPath[path] != nil
}

// startWaiting counts an acquisition as a user of the turnstiles of all names that it
// wants, and returns that of the first name. If a limit is reached, or the client is
// closed or shutting down, it returns an error. It makes no request.
func (ts *turnstiles) startWaiting(r *request, cfg acquireConfig) (*turnstile, error) {
	r.maxWaiters = cfg.maxWaiters
	if limit := ts.cfg.maxWaiters; limit > 0 && (r.maxWaiters == 0 || limit < r.maxWaiters) {
		r.maxWaiters = limit
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closing.Err() != nil {
		return nil, errs.ErrClosed // refuse may have notified those in underway already
	}
	fresh := 0
	for _, w := range r.Wants {
		t := ts.byPath[w.Path]
		switch {
		case t == nil || isUnusedLocked(t):
			fresh++
		case !r.Try && w.Kind.Mode != queue.Shared && !r.roomLocked(t):
			return nil, errs.ErrCrowded // it would have to wait behind those that wait already
		}
	}
	if limit := ts.cfg.maxNames; limit > 0 && fresh > 0 && len(ts.byPath)-ts.unusedNames+fresh > limit {
		return nil, fmt.Errorf("%w: max_names=%d names are in use", errs.ErrTooManyWaiters, limit)
	}
	ts.underway[r] = struct{}{}
	for _, w := range r.Wants {
		t := ts.byPath[w.Path]
		if t == nil {
			t = &turnstile{turnstiles: ts, path: w.Path}
			ts.byPath[w.Path] = t
		}
		ts.countUsesLocked(t, 1, t.standbyUses)
	}
	return ts.byPath[r.Wants[0].Path], nil
}

// roomLocked reports whether the request's limit allows one more waiter for a name. The
// turnstiles' mu is held.
func (r *request) roomLocked(t *turnstile) bool {
	return r.maxWaiters == 0 || int(t.waiting) < r.maxWaiters
}

// mustWait counts an acquisition as one that has to wait for other contenders. If the
// limit of waiters is reached, it cancels the acquisition instead and returns false.
//
// The limit is checked here because only now is it known that the acquisition has to
// wait: a reader that joins readers, one that gets a free permit, and a try do not. An
// acquisition that came earlier, but had to ask the ensemble first, does not displace one
// that already waits.
func (ts *turnstiles) mustWait(r *request) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if !r.served { // otherwise another goroutine has just granted it the lock
		for _, w := range r.Wants {
			if !r.roomLocked(ts.byPath[w.Path]) {
				r.cancel(errs.ErrCrowded)
				return false
			}
		}
		ts.countWaiterLocked(r)
	}
	r.waitFrom = time.Now()
	return true
}

// countWaiterLocked counts an acquisition as one that waits for other contenders.
func (ts *turnstiles) countWaiterLocked(r *request) {
	r.blocked = true
	for _, w := range r.Wants {
		ts.byPath[w.Path].waiting++
	}
}

// stopWaiting ends what startWaiting began.
func (ts *turnstiles) stopWaiting(r *request) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.underway, r)
	ts.servedLocked(r)
	for _, w := range r.Wants {
		ts.endUseLocked(ts.byPath[w.Path])
	}
}

// granted counts a hold, and no longer counts its acquisition as waiting: it may take a
// while until the acquisition's goroutine runs.
func (ts *turnstiles) granted(h *hold, r *request) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.held++
	for _, w := range h.wants {
		t := ts.byPath[w.Path]
		ts.countUsesLocked(t, 1, t.standbyUses)
	}
	ts.servedLocked(r)
}

// joined no longer counts an acquisition as waiting, because it has joined a hold.
func (ts *turnstiles) joined(r *request) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.servedLocked(r)
}

func (ts *turnstiles) servedLocked(r *request) {
	r.served = true
	if !r.blocked {
		return
	}
	r.blocked = false
	for _, w := range r.Wants {
		ts.byPath[w.Path].waiting--
	}
}

// waitAgain is called when an acquisition's lock was lost before Acquire returned. It
// counts the acquisition as waiting again, if it had to wait before.
func (ts *turnstiles) waitAgain(r *request) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	r.served = false
	if !r.waitFrom.IsZero() {
		ts.countWaiterLocked(r)
	}
}

// released ends the count of a hold and its use of its names.
func (ts *turnstiles) released(h *hold) {
	ts.lossMarked()
	ts.vacated(h)
}

// lossMarked ends the count of a hold that is being lost, before its handles end. The hold
// still uses its names, and excludes others of this process, until vacated is called.
func (ts *turnstiles) lossMarked() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.held--
}

// vacated ends a lost hold's use of its names.
func (ts *turnstiles) vacated(h *hold) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for _, w := range h.wants {
		ts.endUseLocked(ts.byPath[w.Path])
	}
}

// endUseLocked ends one use of a turnstile.
func (ts *turnstiles) endUseLocked(t *turnstile) { ts.countUsesLocked(t, -1, t.standbyUses) }

// isUnusedLocked reports whether the client keeps a name and does not use it. turnstiles.mu is
// held.
func isUnusedLocked(t *turnstile) bool { return t.standbyUses && t.uses == 1 }

// countUsesLocked changes the number of a turnstile's uses by n. standby says whether one of
// them is then the standby's. A turnstile without uses is removed. If it was the last,
// Shutdown is notified.
func (ts *turnstiles) countUsesLocked(t *turnstile, n int32, standby bool) {
	if isUnusedLocked(t) {
		ts.unusedNames--
	}
	t.uses += n
	t.standbyUses = standby
	if isUnusedLocked(t) {
		ts.unusedNames++
	}
	if t.uses > 0 {
		return
	}
	delete(ts.byPath, t.path)
	if ts.idle != nil && len(ts.byPath) == 0 {
		select {
		case <-ts.idle:
		default:
			close(ts.idle)
		}
	}
}

// waitSeparately counts r, if it is a writer, as one that acquires with a separate place,
// until the function that it returns is called. Meanwhile no reader joins a hold on the
// names that r wants to write.
func (ts *turnstiles) waitSeparately(r *request) func() {
	if r.Mode != queue.Exclusive {
		return func() {}
	}
	var counted []*turnstile
	ts.mu.Lock()
	for _, w := range r.Wants {
		if w.Kind.Mode == queue.Exclusive {
			t := ts.byPath[w.Path]
			t.separateWriters.Add(1)
			counted = append(counted, t)
		}
	}
	ts.mu.Unlock()
	return func() {
		for _, t := range counted {
			t.separateWriters.Add(-1)
		}
	}
}
