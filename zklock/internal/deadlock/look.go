package deadlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// maxRefuted bounds how many steps one look may find to be wrong.
const maxRefuted = 16

// errMoved means that two reads of a look were made on different connections, and prove nothing together.
var errMoved = errors.New("the connection has changed")

// look reads the register, and ends each of the waits that is the last of a circle. If it could not find
// that out, the waits look again in the next round.
func (d *Detector) look(waits []*registration) {
	ctx, cancel := context.WithTimeout(d.pool.Ctx, d.cfg.ConnectTimeout)
	defer cancel()
	s, err := d.pool.Session(ctx, d.path)
	if err != nil {
		return
	}
	all, err := d.list(ctx, s)
	if err != nil {
		d.bounded(errors.Is(err, driver.ErrReplyTooLarge))
		return
	}
	own := d.own()
	d.deleteStrays(s, all, own)
	g := newGraph(d.known(all, own))
	for _, r := range waits {
		if err := d.settle(ctx, s, g, own, r); err == nil {
			r.lookAt = time.Now().Add(lookAgain/2 + d.cfg.Jitter(lookAgain))
		}
	}
}

// bounded counts a search that has reached a bound.
func (d *Detector) bounded(is bool) {
	if is {
		d.Bounded.Add(1)
	}
}

// own returns this client's registrations, by their ids.
func (d *Detector) own() map[id]*registration {
	d.mu.Lock()
	defer d.mu.Unlock()
	own := make(map[id]*registration)
	for _, n := range d.waits {
		if n.reg != nil {
			own[n.reg.wait.id] = n.reg
		}
	}
	return own
}

// known returns the waits of the graph: those that are listed, and those of this client that the servers
// have refused. It is one or the other: the two have no common order.
func (d *Detector) known(listed []*wait, own map[id]*registration) []*wait {
	if !d.refused() {
		return listed
	}
	var all []*wait
	for _, r := range own {
		all = append(all, &r.wait)
	}
	return all
}

// deleteStrays deletes registrations of this client that no wait has. Creates whose outcomes were not known
// have left them.
func (d *Detector) deleteStrays(s *place.Session, all []*wait, own map[id]*registration) {
	if time.Now().After(d.doubtUntil) {
		return
	}
	for _, w := range all {
		if node := w.node; w.id.client == d.client && own[w.id] == nil {
			d.pool.Spawn(func() { _ = d.deleteNode(s, node) })
		}
	}
}

// settle ends a wait if it is the last of a circle. An error means that this could not be found out.
func (d *Detector) settle(ctx context.Context, s *place.Session, g *graph, own map[id]*registration, r *registration) error {
	self := &r.wait
	if at := slices.IndexFunc(g.waits, func(w *wait) bool { return w.id == self.id }); at >= 0 {
		self = g.waits[at]
	} else {
		return errMoved // it is not there yet, or not any more
	}
	for range maxRefuted {
		circle, bounded := g.circle(self)
		d.bounded(bounded)
		if circle == nil {
			return nil
		}
		links, wrong, err := d.confirm(ctx, s, circle, own)
		switch {
		case err != nil:
			return err
		case wrong >= 0:
			g.refuted = append(g.refuted, circle[wrong])
			continue
		}
		if d.waitsStill(r) {
			r.waiter.Deadlock(links)
		}
		return nil
	}
	d.bounded(true)
	return nil
}

// waitsStill reports whether a wait still is what its registration says.
func (d *Detector) waitsStill(r *registration) bool {
	d.mu.Lock()
	n, waits := d.waits[r.waiter]
	d.mu.Unlock()
	if !waits || n.reg != r || r.over() {
		return false
	}
	now := d.registrationOf(r.waiter, &n)
	return now != nil && now.nested.equal(&r.nested)
}

// confirm looks at a circle for the second time, after a Sync. It returns the index of a step that is wrong,
// or -1, and then what is known of each wait.
func (d *Detector) confirm(ctx context.Context, s *place.Session, circle []step, own map[id]*registration) (links []Link, wrong int, err error) {
	conn := s.Generation()
	if err := d.sync(ctx, s); err != nil {
		return nil, 0, err
	}
	about := make([]description, len(circle))
	for i, c := range circle {
		var there bool
		if about[i], there, err = d.describe(ctx, s, c.wait, own); err != nil || !there {
			return nil, i, err
		}
	}
	for i, c := range circle {
		next := about[(i+1)%len(about)]
		behind, held := about[i].Behind[c.behind], next.Held[c.held]
		ok := behind.Path == held.Path
		if ok {
			ok, err = d.stands(ctx, s, behind, held, c.wait.behind[c.behind], c.next.held[c.held])
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
	if s.Generation() != conn {
		return nil, 0, errMoved
	}
	return links, -1, nil
}

// describe reads the registration of a wait.
func (d *Detector) describe(ctx context.Context, s *place.Session, w *wait, own map[id]*registration) (about description, there bool, err error) {
	r := own[w.id]
	if r != nil && r.wait.node == "" {
		return describe(d.cfg.Root, d.cfg.Host, d.cfg.PID, &r.nested), !r.over(), nil
	}
	n, err := s.Read(ctx, "register", d.path+"/"+w.node)
	switch {
	case errors.Is(err, driver.ErrNoNode), errors.Is(err, driver.ErrNoAuth):
		return description{}, false, nil
	case err != nil:
		return description{}, false, err
	}
	about, there = decode(d.cfg.Root, w, n.Data)
	return about, there, nil
}

// stands reports whether a wait that stands behind a point has to wait for a held node: whether both nodes
// exist, and are still of the kinds that say so.
func (d *Detector) stands(ctx context.Context, s *place.Session, behind, held described, at, node mark) (bool, error) {
	if held.Node == "" {
		front, err := d.find(ctx, s, held.Path, node.zxid)
		if held.Node = front; err != nil || front == "" {
			return false, err
		}
	}
	n, mode, err := d.read(ctx, s, held)
	if err != nil || n.Stat.Czxid != node.zxid || !at.mode.Excludes(mode) {
		return false, err
	}
	if behind.Node == held.Node {
		return at.zxid == node.zxid+1, nil
	}
	n, mode, err = d.read(ctx, s, behind)
	if err != nil || n.Stat.Czxid != at.zxid && n.Stat.Czxid+1 != at.zxid {
		return false, err
	}
	listed, _, _ := d.cfg.Dialect.Parse(behind.Node)
	return listed.Kind.Mode != at.mode || mode == at.mode, nil // not a writer's that has become a reader's
}

// read reads a queue node, and as what kind it counts. A node that is gone has no transaction.
func (d *Detector) read(ctx context.Context, s *place.Session, e described) (driver.Node, queue.Mode, error) {
	n, err := s.Read(ctx, "register", d.cfg.Root+e.Path+"/"+e.Node)
	switch {
	case errors.Is(err, driver.ErrNoNode), errors.Is(err, driver.ErrNoAuth):
		return driver.Node{}, 0, nil
	case err != nil:
		return driver.Node{}, 0, err
	}
	listed, _, _ := d.cfg.Dialect.Parse(e.Node)
	data, _ := queue.Decode(n.Data)
	return n, queue.Effective(listed.Kind, data).Mode, nil
}

// maxFront is how many nodes at the front of a queue are read to find the one that a caller holds.
const maxFront = 16

// find returns the name of the node that a transaction has created, if it is at the front of a queue.
func (d *Detector) find(ctx context.Context, s *place.Session, path string, zxid int64) (node string, err error) {
	var names []string
	err = s.Repeat(ctx, "register", func(ctx context.Context, ds driver.Session) error {
		names, _, err = ds.Children(ctx, d.cfg.Root+path)
		return err
	})
	var q []queue.Node
	for _, name := range names {
		if c, _, ok := d.cfg.Dialect.Parse(name); ok {
			c.Name = name
			q = append(q, c)
		}
	}
	queue.Sort(q)
	for _, c := range q[:min(len(q), maxFront)] {
		n, _, err := d.read(ctx, s, described{Path: path, Node: c.Name})
		if err != nil || n.Stat.Czxid == zxid {
			return c.Name, err
		}
	}
	if errors.Is(err, driver.ErrNoNode) || errors.Is(err, driver.ErrNoAuth) {
		err = nil
	}
	return "", err
}
