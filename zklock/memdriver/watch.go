package memdriver

import (
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
)

// watched is what a server watches for a connection: a node or its children. There is only
// one watch for each connection and watched, even if it is armed repeatedly.
type watched struct {
	path     string
	children bool
}

// watchList is a list of a client's watches. After a reconnect a server compares each list
// with the present state in another way.
type watchList uint8

const (
	// onData watches a node that exists.
	onData watchList = iota

	// onCreation watches a node that is missing.
	onCreation

	// onChildren watches the list of a node's children.
	onChildren
)

// awaited is the key of the client's channels: those of one path and one list fire together.
type awaited struct {
	path string
	list watchList
}

// firedBy returns the client's lists whose watches an event ends.
func firedBy(event driver.EventType) []watchList {
	switch event {
	case driver.EventDeleted:
		return []watchList{onData, onCreation, onChildren}
	case driver.EventChildren:
		return []watchList{onChildren}
	}
	return []watchList{onData, onCreation}
}

// watch arms a connection's one-shot watch.
func (s *server) watch(c *conn, on watched) {
	if _, armed := c.watches[on]; armed {
		return
	}
	if c.watches == nil {
		c.watches = make(map[watched]struct{})
	}
	c.watches[on] = struct{}{}
	s.watches[on] = append(s.watches[on], c)
}

// unwatch disarms all watches of a connection.
func (s *server) unwatch(c *conn) {
	for on := range c.watches {
		rest := slices.DeleteFunc(s.watches[on], func(other *conn) bool { return other == c })
		if len(rest) == 0 {
			delete(s.watches, on)
		} else {
			s.watches[on] = rest
		}
	}
	c.watches = nil
}

// fire triggers the watches that wait for a change. A connection that watches a node and its
// children gets one event for a deletion.
func (s *server) fire(ch *change) {
	if len(s.watches) == 0 {
		return
	}
	var notified []*conn
	if ch.event != driver.EventChildren {
		notified = s.take(watched{ch.path, false})
	}
	if ch.event == driver.EventChildren || ch.event == driver.EventDeleted {
		for _, c := range s.take(watched{ch.path, true}) {
			if !slices.Contains(notified, c) {
				notified = append(notified, c)
			}
		}
	}
	for _, c := range notified {
		c.notify(ch.path, ch.event)
	}
}

// take disarms a watch for all connections, and returns them.
func (s *server) take(on watched) []*conn {
	waiting, ok := s.watches[on]
	if !ok {
		return nil
	}
	delete(s.watches, on)
	for _, c := range waiting {
		delete(c.watches, on)
	}
	return waiting
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
// has changed since the newest transaction that the client has seen. A missing node is reported
// as deleted, whenever it was deleted. A node that was made and deleted again since then leaves
// no trace.
func (s *server) rearm(c *conn, r *request) {
	for _, w := range r.watches {
		n := s.tree.find(w.path)
		switch {
		case n == nil && w.list != onCreation:
			c.notify(w.path, driver.EventDeleted)
		case n != nil && w.list == onCreation:
			c.notify(w.path, driver.EventCreated)
		case w.list == onData && n.mzxid > r.since:
			c.notify(w.path, driver.EventChanged)
		case w.list == onChildren && n.pzxid > r.since:
			c.notify(w.path, driver.EventChildren)
		default:
			s.watch(c, watched{w.path, w.list == onChildren})
		}
	}
}
