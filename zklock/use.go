package zklock

import (
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// startWaiting counts an acquisition in, at the turnstile of every name wanted,
// or refuses it because of a limit or the client's end, without any I/O. It
// returns the first one's turnstile.
func (c *Client) startWaiting(r *request, cfg acquireConfig) (*turnstile, error) {
	r.maxWaiters = cfg.maxWaiters
	if limit := c.cfg.maxWaiters; limit > 0 && (r.maxWaiters == 0 || limit < r.maxWaiters) {
		r.maxWaiters = limit
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing.Err() != nil {
		return nil, ErrClosed // refuse may have been through with underway already
	}
	fresh := 0
	for _, w := range r.wants {
		t := c.names[w.path]
		switch {
		case t == nil:
			fresh++
		case !r.try && w.kind.Mode != queue.Shared && !r.roomLocked(t):
			return nil, errCrowded // whoever waits there already has to be waited for
		}
	}
	if limit := c.cfg.maxNames; limit > 0 && fresh > 0 && len(c.names)+fresh > limit {
		return nil, fmt.Errorf("%w: max_names=%d names are in use", ErrTooManyWaiters, limit)
	}
	c.underway[r] = struct{}{}
	for _, w := range r.wants {
		t := c.names[w.path]
		if t == nil {
			t = &turnstile{client: c, path: w.path}
			c.names[w.path] = t
		}
		t.uses++
	}
	return c.names[r.wants[0].path], nil
}

// roomLocked reports whether one more may wait for a name, as far as the request
// goes. The client's mu is held.
func (r *request) roomLocked(t *turnstile) bool {
	return r.maxWaiters == 0 || t.waiting < r.maxWaiters
}

// mustWait counts an acquisition as one that has to wait for others. If as many
// as may wait already, it ends the acquisition instead and returns false.
//
// Only here is it known: who gets in at once, beside other readers or with a free
// permit, waits for nobody, and a try never does. Nobody who waits is turned out
// for one who came before him and had to ask the ensemble first.
func (c *Client) mustWait(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !r.served { // else by another goroutine, just now
		for _, w := range r.wants {
			if !r.roomLocked(c.names[w.path]) {
				r.cancel(errCrowded)
				return false
			}
		}
		c.countLocked(r)
	}
	r.waitFrom = time.Now()
	return true
}

// countLocked counts an acquisition in with those that wait for others.
func (c *Client) countLocked(r *request) {
	r.blocked = true
	for _, w := range r.wants {
		c.names[w.path].waiting++
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
	r.served = true
	if !r.blocked {
		return
	}
	r.blocked = false
	for _, w := range r.wants {
		c.names[w.path].waiting--
	}
}

// waitAgain counts an acquisition in again, if it had to wait, whose lock was lost
// before it had it.
func (c *Client) waitAgain(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.served = false
	if !r.waitFrom.IsZero() {
		c.countLocked(r)
	}
}

// ended counts a hold out and ends its uses of its names.
func (c *Client) ended(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held--
	c.disuseLocked(h)
}

// losing counts n holds out whose holders are about to know that they are over. They
// are in the way of others in this process until lost.
func (c *Client) losing(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held -= n
}

// lost ends a lost hold's uses of its names.
func (c *Client) lost(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disuseLocked(h)
}

func (c *Client) disuseLocked(h *hold) {
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
