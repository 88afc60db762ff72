package zklock

import (
	"fmt"
	"time"
)

// startWaiting counts an acquisition in, at the turnstile of every name wanted,
// or refuses it because of a limit or the client's end, without any I/O. It
// returns the first one's turnstile.
func (c *Client) startWaiting(r *request, cfg acquireConfig) (*turnstile, error) {
	wants := r.wants
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing.Err() != nil {
		return nil, ErrClosed // refuse may have been through with underway already
	}
	fresh := 0
	for _, w := range wants {
		t := c.names[w.path]
		if t == nil {
			fresh++
			continue
		}
		for _, limit := range []int{c.cfg.maxWaiters, cfg.maxWaiters} {
			if limit > 0 && t.waitersLocked() >= limit {
				return nil, fmt.Errorf("%w: %d of this client wait for the name", ErrTooManyWaiters, limit)
			}
		}
	}
	if limit := c.cfg.maxNames; limit > 0 && fresh > 0 && len(c.names)+fresh > limit {
		return nil, fmt.Errorf("%w: max_names=%d names are in use", ErrTooManyWaiters, limit)
	}
	c.underway[r] = struct{}{}
	for _, w := range wants {
		t := c.names[w.path]
		if t == nil {
			t = &turnstile{client: c, path: w.path}
			c.names[w.path] = t
		}
		if limit := c.cfg.maxWaiters; limit > 0 && t.waiting >= limit {
			t.surplus = r
		}
		t.uses++
		t.waiting++
	}
	return c.names[wants[0].path], nil
}

// waitersLocked is how many wait for a name. While nobody here holds it, one of
// those under way who has not found that he must wait may be about to get it, and
// does not count.
//
// That shows when the ensemble answers him, and max_waiters is to hold without
// asking it anything. So who comes meanwhile is let in as if he got it; and if he
// has to wait after all, the last who was let in is one too many, and has to go:
// see mustWait. While more than max_waiters are under way, and nobody holds,
// surplus is that last one.
func (t *turnstile) waitersLocked() int {
	if t.uses == t.waiting && t.blocked < t.waiting {
		return t.waiting - 1
	}
	return t.waiting
}

// mustWait counts an acquisition as one that has to wait for others.
func (c *Client) mustWait(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.waitFrom = time.Now()
	if r.served {
		return // by another goroutine, just now
	}
	r.blocked = true
	for _, w := range r.wants {
		t := c.names[w.path]
		t.blocked++
		if t.surplus != nil && t.waitersLocked() > c.cfg.maxWaiters {
			t.surplus.cancel(errSurplus)
			t.surplus = nil
		}
	}
}

// stopWaiting counts an acquisition out again.
func (c *Client) stopWaiting(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.underway, r)
	c.servedLocked(r)
	for _, w := range r.wants {
		c.dropLocked(c.names[w.path])
	}
}

// granted counts a hold in, and its acquisition out of those that wait: its
// goroutine may take a while to hear of it.
func (c *Client) granted(h *hold, r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held++
	for _, w := range h.wants {
		c.names[w.path].uses++
	}
	c.servedLocked(r)
}

// joined counts an acquisition out of those that wait, as granted does.
func (c *Client) joined(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servedLocked(r)
}

func (c *Client) servedLocked(r *request) {
	if r.served {
		return
	}
	r.served = true
	for _, w := range r.wants {
		t := c.names[w.path]
		t.waiting--
		t.surplus = nil // there is room for him now
		if r.blocked {
			t.blocked--
		}
	}
	r.blocked = false
}

// waitAgain counts an acquisition in again, whose lock was lost before it had it.
func (c *Client) waitAgain(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.served, r.blocked = false, !r.waitFrom.IsZero()
	for _, w := range r.wants {
		t := c.names[w.path]
		t.waiting++
		if r.blocked {
			t.blocked++
		}
	}
}

// ended counts a hold out.
func (c *Client) ended(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held--
	for _, w := range h.wants {
		c.dropLocked(c.names[w.path])
	}
}

// dropLocked ends a use. A name that has none is forgotten, and Shutdown is told
// when it was the last.
func (c *Client) dropLocked(t *turnstile) {
	t.uses--
	if t.uses > 0 {
		return
	}
	delete(c.names, t.path)
	if c.idle != nil && len(c.names) == 0 {
		select {
		case <-c.idle:
		default:
			close(c.idle)
		}
	}
}
