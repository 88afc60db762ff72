package zklock

import "fmt"

// nameUse counts what this client does with one name. It exists while there is
// anything to count.
type nameUse struct {
	waiting int // acquisitions under way
	holding int // holds
}

// startWaiting counts an acquisition in, or refuses it without any I/O: because
// of a limit, or, for a try, because this client holds or wants the name
// itself.
func (c *Client) startWaiting(path string, cfg acquireConfig) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.names[path]
	if u == nil {
		if limit := c.cfg.maxNames; limit > 0 && len(c.names) >= limit {
			return fmt.Errorf("%w: max_names=%d names are in use", ErrTooManyWaiters, limit)
		}
		u = &nameUse{}
	}
	if cfg.try && u.waiting+u.holding > 0 {
		return ErrNotAcquired
	}
	for _, limit := range []int{c.cfg.maxWaiters, cfg.maxWaiters} {
		if limit > 0 && u.waiting >= limit {
			return fmt.Errorf("%w: %d of this client wait for the name", ErrTooManyWaiters, u.waiting)
		}
	}
	u.waiting++
	c.names[path] = u
	return nil
}

// stopWaiting counts an acquisition out again.
func (c *Client) stopWaiting(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.names[path]
	u.waiting--
	c.dropLocked(path, u)
}

// granted counts a hold in. Its acquisition is still counted as waiting.
func (c *Client) granted(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names[h.path].holding++
	c.held++
}

// ended counts a hold out.
func (c *Client) ended(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.names[h.path]
	u.holding--
	c.held--
	c.dropLocked(h.path, u)
}

// dropLocked forgets a name that is not used any more, and tells Shutdown when
// it was the last.
func (c *Client) dropLocked(path string, u *nameUse) {
	if u.waiting+u.holding > 0 {
		return
	}
	delete(c.names, path)
	if c.idle != nil && len(c.names) == 0 {
		select {
		case <-c.idle:
		default:
			close(c.idle)
		}
	}
}
