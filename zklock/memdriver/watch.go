package memdriver

import (
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
)

// watch arms a connection's one-shot watch on a path. There is only one for each
// connection and path, even if it is armed repeatedly.
func (s *server) watch(c *conn, path string) {
	if _, armed := c.watches[path]; armed {
		return
	}
	if c.watches == nil {
		c.watches = make(map[string]struct{})
	}
	c.watches[path] = struct{}{}
	s.watches[path] = append(s.watches[path], c)
}

// unwatch disarms all watches of a connection.
func (s *server) unwatch(c *conn) {
	for path := range c.watches {
		rest := slices.DeleteFunc(s.watches[path], func(other *conn) bool { return other == c })
		if len(rest) == 0 {
			delete(s.watches, path)
		} else {
			s.watches[path] = rest
		}
	}
	c.watches = nil
}

// fire triggers the watches that wait for a change.
func (s *server) fire(ch *change) {
	if len(s.watches) == 0 {
		return
	}
	waiting, ok := s.watches[ch.path]
	if !ok {
		return
	}
	delete(s.watches, ch.path)
	for _, c := range waiting {
		delete(c.watches, ch.path)
		c.notify(ch.path, ch.event)
	}
}

// notify sends an event to the client.
func (c *conn) notify(path string, event driver.EventType) {
	c.srv.e.ops.Events++
	if c.down.clear() {
		c.client.notified(c, path, event)
		return
	}
	c.down.send(func() { c.client.notified(c, path, event) })
}

// rearm sets the watches of a client that has reconnected. It reports at once what
// has changed since the newest transaction that the client has seen. A missing node
// counts as deleted, whenever it was deleted.
func (s *server) rearm(c *conn, r *request) {
	for _, path := range r.paths {
		n := s.tree.find(path)
		switch {
		case n == nil:
			c.notify(path, driver.EventDeleted)
		case n.mzxid > r.since:
			c.notify(path, driver.EventChanged)
		default:
			s.watch(c, path)
		}
	}
}
