package memdriver

import (
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
)

// port is the client's side of a connection that memcontrol.Controls.Attach has made.
type port struct {
	e  *Ensemble
	c  *conn
	to memcontrol.Client

	foreign bool
}

var _ peer = (*port)(nil)

// Open implements memcontrol.Port.
func (e controls) Open() (rest func()) {
	e.enter()
	defer e.leave()
	idle := !e.busy()
	if e.ports++; idle {
		e.wake()
	}
	return sync.OnceFunc(func() {
		e.enter()
		defer e.leave()
		e.ports--
		e.rest()
	})
}

// Server implements memcontrol.Port.
func (e controls) Server(server int) (mode string, cut, refused bool) {
	e.enter()
	defer e.leave()
	s := e.servers[server]
	switch {
	case s.role == leading && len(e.servers) == 1:
		mode = "standalone"
	case s.role == leading:
		mode = "leader"
	case s.role == following:
		mode = "follower"
	}
	for _, c := range e.cuts {
		if c.client(0, server) {
			cut, refused = true, refused || c.reset
		}
	}
	return mode, cut, refused || e.closed || !s.started()
}

// Attach implements memcontrol.Port.
func (e controls) Attach(server int, h memcontrol.Hello, to memcontrol.Client) memcontrol.Link {
	e.enter()
	defer e.leave()
	p := &port{e: e.Ensemble, to: to, foreign: h.Foreign}
	e.made++
	srv := e.servers[server]
	p.c = &conn{number: e.made, srv: srv, client: p, clientOpen: true, id: h.Session}
	p.c.up, p.c.down = pipe{e: e.Ensemble}, pipe{e: e.Ensemble}
	e.conns[p.c] = struct{}{}
	cut, refused := e.cutOff(p.c)
	if refused || e.closed {
		p.c.reset()
		return p
	}
	p.c.up.cut, p.c.down.cut = cut, cut
	p.c.up.send(func() { srv.accept(p.c, hello{h.Session, h.Password, h.Seen, h.Timeout}) })
	return p
}

// connOf returns the newest connection of a session's client; nil if it has none.
func (e *Ensemble) connOf(sessionID int64) (newest *conn) {
	if s := e.sessions[sessionID]; s != nil {
		return s.conn
	}
	for c := range e.conns {
		if _, ok := c.client.(*port); ok && c.clientOpen && c.id == sessionID && (newest == nil || c.number > newest.number) {
			newest = c
		}
	}
	return newest
}

// Send implements memcontrol.Link.
func (p *port) Send(q memcontrol.Request) {
	p.e.enter()
	defer p.e.leave()
	if !p.c.clientOpen {
		return
	}
	r := &request{path: q.Path, ops: q.Ops, results: make([]driver.OpResult, len(q.Ops)), since: q.Seen, user: q.User, password: q.Password}
	r.kind = map[memcontrol.RequestKind]requestKind{
		memcontrol.Write: requestWrite, memcontrol.Multi: requestMulti, memcontrol.Get: requestGet, memcontrol.Children: requestChildren,
		memcontrol.Exists: requestGet, memcontrol.Sync: requestSync, memcontrol.Ping: requestPing,
		memcontrol.SetWatches: requestSetWatches, memcontrol.Close: requestCloseSession, memcontrol.Auth: requestAuth,
	}[q.Kind]
	if q.Watch {
		r.kind = map[requestKind]requestKind{requestGet: requestWatch, requestChildren: requestWatchChildren}[r.kind]
		if q.Kind == memcontrol.Exists {
			r.kind = requestWatchExists
		}
	}
	for list, paths := range q.Watches {
		for _, path := range paths {
			r.watches = append(r.watches, awaited{path, watchList(list)})
		}
	}
	p.c.up.send(func() { p.c.srv.receive(p.c, r) })
}

// Close implements memcontrol.Link.
func (p *port) Close() {
	p.e.enter()
	defer p.e.leave()
	p.c.abandon()
	p.c.forget()
}

func (p *port) established(c *conn, id int64, timeout time.Duration) {
	p.to.Welcome(id, password(id), timeout)
}

func (p *port) expired(*conn) { p.to.Welcome(0, "", 0) }

func (p *port) answered(_ *conn, r *request) {
	a := memcontrol.Answer{Zxid: r.zxid, Err: r.err, Failed: r.txn.failed, Node: r.node, Names: r.names, Results: r.results}
	if r.missing {
		a.Err = driver.ErrNoNode
	}
	p.to.Answer(a)
}

func (p *port) notified(_ *conn, path string, event driver.EventType) { p.to.Event(path, event) }

func (p *port) disconnected(c *conn) {
	if c.clientOpen {
		c.clientOpen = false
		p.to.Closed(c.down.broken)
	}
	c.forget()
}

// cutID implements peer. A session that begins has no id yet, and no cut is around it.
func (p *port) cutID() int64 {
	if p.foreign {
		return 0
	}
	return p.c.id
}
