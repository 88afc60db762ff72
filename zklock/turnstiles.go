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

// turnstiles are the names of a client that are waited for or held.
type turnstiles struct {
	*common
	pool  *session.Pool
	hooks observers

	closing context.Context         // ends, with cause ErrClosed, when nothing is acquired any more
	close   context.CancelCauseFunc // ends closing

	mu       sync.Mutex
	byPath   map[string]*turnstile // guarded by mu
	held     int                   // guarded by mu; holds
	underway map[*request]struct{} // guarded by mu; acquisitions under way
	idle     chan struct{}         // guarded by mu; not nil: closed when byPath has become empty
}

func (all *turnstiles) init(c *common, p *session.Pool, hooks observers) {
	all.common, all.pool, all.hooks = c, p, hooks
	all.byPath, all.underway = make(map[string]*turnstile), make(map[*request]struct{})
	all.closing, all.close = context.WithCancelCause(context.Background())
}

// refuse has everything that waits fail with ErrClosed, now and from now on.
func (all *turnstiles) refuse() {
	all.close(errs.ErrClosed)
	all.mu.Lock()
	waiting := slices.Collect(maps.Keys(all.underway))
	all.mu.Unlock()
	for _, r := range waiting {
		r.cancel(errs.ErrClosed)
	}
}

// unused returns a channel that is closed when no name is in use.
func (all *turnstiles) unused() <-chan struct{} {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.idle == nil {
		all.idle = make(chan struct{})
		if all.held == 0 && len(all.byPath) == 0 {
			close(all.idle)
		}
	}
	return all.idle
}

// inUse reports whether the client waits for or holds a name.
func (all *turnstiles) inUse(path string) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.byPath[path] != nil
}

// startWaiting counts an acquisition in, at the turnstile of every name wanted,
// or refuses it because of a limit or the client's end, without any I/O. It
// returns the first one's turnstile.
func (all *turnstiles) startWaiting(r *request, cfg acquireConfig) (*turnstile, error) {
	r.maxWaiters = cfg.maxWaiters
	if limit := all.cfg.maxWaiters; limit > 0 && (r.maxWaiters == 0 || limit < r.maxWaiters) {
		r.maxWaiters = limit
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closing.Err() != nil {
		return nil, errs.ErrClosed // refuse may have been through with underway already
	}
	fresh := 0
	for _, w := range r.Wants {
		t := all.byPath[w.Path]
		switch {
		case t == nil:
			fresh++
		case !r.Try && w.Kind.Mode != queue.Shared && !r.roomLocked(t):
			return nil, errs.ErrCrowded // whoever waits there already has to be waited for
		}
	}
	if limit := all.cfg.maxNames; limit > 0 && fresh > 0 && len(all.byPath)+fresh > limit {
		return nil, fmt.Errorf("%w: max_names=%d names are in use", errs.ErrTooManyWaiters, limit)
	}
	all.underway[r] = struct{}{}
	for _, w := range r.Wants {
		t := all.byPath[w.Path]
		if t == nil {
			t = &turnstile{all: all, path: w.Path}
			all.byPath[w.Path] = t
		}
		t.uses++
	}
	return all.byPath[r.Wants[0].Path], nil
}

// roomLocked reports whether one more may wait for a name, as far as the request
// goes. The turnstiles' mu is held.
func (r *request) roomLocked(t *turnstile) bool {
	return r.maxWaiters == 0 || t.waiting < r.maxWaiters
}

// mustWait counts an acquisition as one that has to wait for others. If as many
// as may wait already, it ends the acquisition instead and returns false.
//
// Only here is it known: who gets in at once, beside other readers or with a free
// permit, waits for nobody, and a try never does. Nobody who waits is turned out
// for one who came before him and had to ask the ensemble first.
func (all *turnstiles) mustWait(r *request) bool {
	all.mu.Lock()
	defer all.mu.Unlock()
	if !r.served { // else by another goroutine, just now
		for _, w := range r.Wants {
			if !r.roomLocked(all.byPath[w.Path]) {
				r.cancel(errs.ErrCrowded)
				return false
			}
		}
		all.countLocked(r)
	}
	r.waitFrom = time.Now()
	return true
}

// countLocked counts an acquisition in with those that wait for others.
func (all *turnstiles) countLocked(r *request) {
	r.blocked = true
	for _, w := range r.Wants {
		all.byPath[w.Path].waiting++
	}
}

// stopWaiting counts an acquisition out again.
func (all *turnstiles) stopWaiting(r *request) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.underway, r)
	all.servedLocked(r)
	for _, w := range r.Wants {
		all.dropLocked(all.byPath[w.Path])
	}
}

// granted counts a hold in, and its acquisition out of those that wait: its
// goroutine may take a while to hear of it.
func (all *turnstiles) granted(h *hold, r *request) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.held++
	for _, w := range h.wants {
		all.byPath[w.Path].uses++
	}
	all.servedLocked(r)
}

// joined counts an acquisition out of those that wait, as granted does.
func (all *turnstiles) joined(r *request) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.servedLocked(r)
}

func (all *turnstiles) servedLocked(r *request) {
	r.served = true
	if !r.blocked {
		return
	}
	r.blocked = false
	for _, w := range r.Wants {
		all.byPath[w.Path].waiting--
	}
}

// waitAgain counts an acquisition in again, if it had to wait, whose lock was lost
// before it had it.
func (all *turnstiles) waitAgain(r *request) {
	all.mu.Lock()
	defer all.mu.Unlock()
	r.served = false
	if !r.waitFrom.IsZero() {
		all.countLocked(r)
	}
}

// released counts a hold out and ends its uses of its names.
func (all *turnstiles) released(h *hold) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.held--
	all.disuseLocked(h)
}

// losing counts a hold out whose holders are about to know that it is over. It is in the
// way of others in this process until lost.
func (all *turnstiles) losing() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.held--
}

// lost ends a lost hold's uses of its names.
func (all *turnstiles) lost(h *hold) {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.disuseLocked(h)
}

func (all *turnstiles) disuseLocked(h *hold) {
	for _, w := range h.wants {
		all.dropLocked(all.byPath[w.Path])
	}
}

// dropLocked ends a use. A name that has none is forgotten, and Shutdown is told
// when it was the last.
func (all *turnstiles) dropLocked(t *turnstile) {
	t.uses--
	if t.uses > 0 {
		return
	}
	delete(all.byPath, t.path)
	if all.idle != nil && len(all.byPath) == 0 {
		select {
		case <-all.idle:
		default:
			close(all.idle)
		}
	}
}

// count fills in what is held and waited for.
func (all *turnstiles) count(st *Stats) {
	all.mu.Lock()
	defer all.mu.Unlock()
	st.Held = all.held
	st.Acquiring = len(all.underway)
	for r := range all.underway {
		if r.blocked {
			st.Waiting++
			st.LongestWait = max(st.LongestWait, time.Since(r.waitFrom))
		}
	}
}

// stepAside has the names that r is to write known as waited for, though not in
// their turnstiles, until the function it returns is called.
func (all *turnstiles) stepAside(r *request) func() {
	if r.Mode != queue.Exclusive {
		return func() {}
	}
	var aside []*turnstile
	all.mu.Lock()
	for _, w := range r.Wants {
		if w.Kind.Mode == queue.Exclusive {
			t := all.byPath[w.Path]
			t.aside.Add(1)
			aside = append(aside, t)
		}
	}
	all.mu.Unlock()
	return func() {
		for _, t := range aside {
			t.aside.Add(-1)
		}
	}
}
