package memdriver

import (
	"cmp"
	"maps"
	"slices"
	"sync"
)

// Cut describes connections that a partition cuts. Make one with [BetweenServers],
// [AroundServer], [AroundSession], [BetweenSession] or [AroundClients].
//
// A cut connection falls silent. Neither end is notified; each gives the connection
// up after it has waited long enough. If the connection heals before that, the messages sent
// during the cut arrive. With [Cut.Reset] both ends notice at once.
type Cut struct {
	kind    cutKind
	a, b    int
	session int64
	reset   bool
}

type cutKind uint8

const (
	betweenServers cutKind = iota
	aroundServer
	aroundSession
	betweenSession
	aroundClients
)

// BetweenServers cuts two servers from each other.
func BetweenServers(a, b int) Cut { return Cut{kind: betweenServers, a: a, b: b} }

// AroundServer cuts a server from all other servers, but not from its clients: it
// goes on answering them until it notices that it is alone.
func AroundServer(server int) Cut { return Cut{kind: aroundServer, a: server} }

// AroundSession cuts a session's client from all servers.
func AroundSession(id int64) Cut { return Cut{kind: aroundSession, session: id} }

// BetweenSession cuts a session's client from one server.
func BetweenSession(id int64, server int) Cut {
	return Cut{kind: betweenSession, session: id, a: server}
}

// AroundClients cuts a server from all clients, including those that connect later,
// but not from the other servers.
func AroundClients(server int) Cut { return Cut{kind: aroundClients, a: server} }

// Reset returns the same cut with a different effect: connections break instead of
// falling silent, and new ones are refused.
func (c Cut) Reset() Cut {
	c.reset = true
	return c
}

// servers reports whether c cuts two servers from each other.
func (c Cut) servers(a, b int) bool {
	switch c.kind {
	case betweenServers:
		return c.a == a && c.b == b || c.a == b && c.b == a
	case aroundServer:
		return (c.a == a) != (c.a == b)
	}
	return false
}

// client reports whether c cuts a client from a server.
func (c Cut) client(id int64, server int) bool {
	switch c.kind {
	case aroundSession:
		return c.session == id
	case betweenSession:
		return c.session == id && c.a == server
	case aroundClients:
		return c.a == server
	}
	return false
}

// Partition adds cuts to the existing ones.
func (e *Ensemble) Partition(cuts ...Cut) {
	e.enter()
	defer e.leave()
	e.cuts = append(e.cuts, cuts...)
	e.recut()
}

// Heal removes cuts, with or without Reset, or all of them if none is given. Messages that were
// held up arrive, unless both ends have given up by then.
func (e *Ensemble) Heal(cuts ...Cut) {
	e.enter()
	defer e.leave()
	e.cuts = slices.DeleteFunc(e.cuts, func(have Cut) bool {
		return len(cuts) == 0 || slices.ContainsFunc(cuts, func(c Cut) bool { return c.Reset() == have.Reset() })
	})
	e.recut()
}

// recut applies the cuts to all connections.
func (e *Ensemble) recut() {
	for _, c := range slices.SortedFunc(maps.Keys(e.conns), byMade) {
		cut, reset := e.cutOff(c)
		if reset {
			c.reset()
			continue
		}
		c.up.setCut(cut)
		c.down.setCut(cut)
	}
	for _, k := range slices.Clone(e.links) {
		if !k.leaderOpen && !k.followerOpen {
			continue
		}
		cut, reset := e.cutBetween(k.leader.srv, k.follower)
		if reset {
			k.reset()
			continue
		}
		k.up.setCut(cut)
		k.down.setCut(cut)
	}
}

// HoldReplies implements memcontrol.Controls.
func (e controls) HoldReplies(sessionID int64) (release func()) {
	return e.hold(sessionID, func(c *conn) *pipe { return &c.down })
}

// HoldRequests implements memcontrol.Controls.
func (e controls) HoldRequests(sessionID int64) (release func()) {
	return e.hold(sessionID, func(c *conn) *pipe { return &c.up })
}

func (e *Ensemble) hold(sessionID int64, of func(*conn) *pipe) (release func()) {
	e.enter()
	defer e.leave()
	c := e.connOf(sessionID)
	if c == nil {
		return func() {}
	}
	p := of(c)
	p.pause()
	var once sync.Once
	return func() {
		e.enter()
		defer e.leave()
		once.Do(p.resume)
	}
}

func byMade(a, b *conn) int { return cmp.Compare(a.number, b.number) }

// cutOff reports whether a client's connection is cut, and whether it is to break.
func (e *Ensemble) cutOff(c *conn) (cut, reset bool) {
	for _, other := range e.cuts {
		if other.client(c.client.cutID(), c.srv.index) {
			cut, reset = true, reset || other.reset
		}
	}
	return cut, reset
}

// cutID returns the id by which cuts name the session's client: 0 for a client that has taken the
// session over, since cuts around a session are around the client that has opened it.
func (s *session) cutID() int64 {
	if s.taken {
		return 0
	}
	return s.id
}

// cutBetween reports the same for the link between two servers.
func (e *Ensemble) cutBetween(a, b *server) (cut, reset bool) {
	for _, other := range e.cuts {
		if other.servers(a.index, b.index) {
			cut, reset = true, reset || other.reset
		}
	}
	return cut, reset
}

// parted reports whether two servers cannot reach each other.
func (e *Ensemble) parted(a, b *server) bool {
	cut, _ := e.cutBetween(a, b)
	return cut
}
