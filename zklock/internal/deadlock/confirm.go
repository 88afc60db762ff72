package deadlock

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// errMoved means that two reads of a look were made on different connections, and prove nothing together.
var errMoved = errors.New("the connection has changed")

// Link is one wait of a circle. It waits for the next, and the last one for the first.
type Link struct {
	Host, Label, Trace string
	PID                int
	Held               string // the name of the lock that it holds and the one before waits for
	Waiting            string // the name of the lock that it waits for
	Node               string // the queue node with which it holds Held; "" if it holds it by a caller
}

// view is what one look knows: the waits that are listed, and how to find out more of them.
type view struct {
	*register
	s    *place.Session
	own  map[id]*registration // of this client
	g    *graph
	conn uint64 // the connection of s on which the look has begun
	sync bool   // the Sync of this look was made
}

// maxRefuted bounds how many steps one search may find to be wrong.
const maxRefuted = 16

// errBounded means that a search has reached a bound.
var errBounded = errors.New("the search for a circle was too long")

// search returns a circle of which a wait is the last, one of the shortest, and what is known of its waits;
// nil if there is none that is confirmed.
func (v *view) search(ctx context.Context, last *wait) ([]step, []Link, error) {
	for range maxRefuted {
		circle, bounded := v.g.circle(last)
		switch {
		case bounded:
			return nil, nil, errBounded
		case circle == nil:
			return nil, nil, nil
		}
		links, wrong, err := v.confirm(ctx, circle)
		if err != nil {
			return nil, nil, err
		}
		if wrong < 0 {
			return circle, links, nil
		}
		w := circle[wrong].wait
		v.g.refuted[w] = append(v.g.refuted[w], circle[wrong])
	}
	return nil, nil, errBounded
}

// confirm looks at a circle for the second time, after a Sync of this look. It returns the index of a step
// that is wrong, or -1, and then what is known of each wait.
//
// What it reads was so at the Sync: all of it was made before, no registration and no node comes back, and
// no node excludes more than before. Without a Sync a server that lags shows what is over. The list of
// commits does not show that: a registration stays for a while when a lock that it lists was downgraded, or
// released by a caller in another process, and when others have ended a node or its session.
func (v *view) confirm(ctx context.Context, circle []step) (links []Link, wrong int, err error) {
	if err := v.synced(ctx); err != nil {
		return nil, 0, err
	}
	about := make([]description, len(circle))
	for i, c := range circle {
		var there bool
		if about[i], there, err = v.describe(ctx, c.wait); err != nil || !there {
			return nil, i, err
		}
	}
	for i, c := range circle {
		next := about[(i+1)%len(about)]
		behind, held := about[i].Behind[c.behind], next.Held[c.held]
		ok := behind.Path == held.Path
		if ok {
			ok, err = v.stands(ctx, v.s, behind, held, c.wait.behind[c.behind], c.next.held[c.held])
		}
		if err != nil || !ok {
			return nil, i, err
		}
		links = append(links, Link{Host: about[i].Host, PID: about[i].PID, Label: about[i].Label, Trace: about[i].Trace, Waiting: behind.Name})
	}
	for i, c := range circle {
		held := about[(i+1)%len(about)].Held[c.held]
		l := &links[(i+1)%len(links)]
		l.Held, l.Node = held.Name, held.Node
	}
	if v.s.Generation() != v.conn {
		return nil, 0, errMoved
	}
	return links, -1, nil
}

// synced returns when the server has applied all that was committed when this look began. It asks once.
func (v *view) synced(ctx context.Context) error {
	if v.sync {
		return nil
	}
	err := v.s.Repeat(ctx, "sync", func(ctx context.Context, ds driver.Session) error { return ds.Sync(ctx, v.path) })
	v.sync = err == nil
	return err
}

// describe reads the registration of a wait.
func (v *view) describe(ctx context.Context, w *wait) (about description, there bool, err error) {
	if w.node == "" {
		r := v.own[w.id]
		return describe(v.cfg.Root, v.cfg.Host, v.cfg.PID, &r.nested), !r.over(), nil
	}
	n, err := v.s.Read(ctx, "register", v.path+"/"+w.node)
	switch {
	case errors.Is(err, driver.ErrNoNode), errors.Is(err, driver.ErrNoAuth):
		return description{}, false, nil
	case err != nil:
		return description{}, false, err
	}
	about, there = decode(v.cfg.Root, w, n.Data)
	return about, there, nil
}

// stands reports whether a wait that stands behind a point has to wait for a held node: whether both nodes
// exist, and are still of the kinds that say so.
func (g *register) stands(ctx context.Context, s *place.Session, behind, held described, at, node mark) (bool, error) {
	if held.Node == "" {
		front, err := g.find(ctx, s, held.Path, node.zxid)
		if held.Node = front; err != nil || front == "" {
			return false, err
		}
	}
	n, mode, err := g.read(ctx, s, held)
	if err != nil || n.Stat.Czxid != node.zxid || !at.mode.Excludes(mode) {
		return false, err
	}
	if behind.Node == held.Node {
		return at.zxid == node.zxid+1, nil
	}
	n, mode, err = g.read(ctx, s, behind)
	if err != nil || n.Stat.Czxid != at.zxid && n.Stat.Czxid+1 != at.zxid {
		return false, err
	}
	listed, _, _ := g.cfg.Dialect.Parse(behind.Node)
	return listed.Kind.Mode != at.mode || mode == at.mode, nil // not a writer's that has become a reader's
}

// read reads a queue node, and as what kind it counts. A node that is gone has no transaction.
func (g *register) read(ctx context.Context, s *place.Session, e described) (driver.Node, queue.Mode, error) {
	n, err := s.Read(ctx, "register", g.cfg.Root+e.Path+"/"+e.Node)
	switch {
	case errors.Is(err, driver.ErrNoNode), errors.Is(err, driver.ErrNoAuth):
		return driver.Node{}, 0, nil
	case err != nil:
		return driver.Node{}, 0, err
	}
	listed, _, _ := g.cfg.Dialect.Parse(e.Node)
	data, _ := queue.Decode(n.Data)
	return n, queue.Effective(listed.Kind, data).Mode, nil
}

// maxFront is how many nodes at the front of a queue are read to find the one that a caller holds.
const maxFront = 16

// find returns the name of the node that a transaction has created, if it is at the front of a queue.
func (g *register) find(ctx context.Context, s *place.Session, path string, zxid int64) (node string, err error) {
	var names []string
	err = s.Repeat(ctx, "register", func(ctx context.Context, ds driver.Session) error {
		names, _, err = ds.Children(ctx, g.cfg.Root+path)
		return err
	})
	var q []queue.Node
	for _, name := range names {
		if c, _, ok := g.cfg.Dialect.Parse(name); ok {
			c.Name = name
			q = append(q, c)
		}
	}
	queue.Sort(q)
	for _, c := range q[:min(len(q), maxFront)] {
		n, _, err := g.read(ctx, s, described{Path: path, Node: c.Name})
		if err != nil || n.Stat.Czxid == zxid {
			return c.Name, err
		}
	}
	if errors.Is(err, driver.ErrNoNode) || errors.Is(err, driver.ErrNoAuth) {
		err = nil
	}
	return "", err
}
