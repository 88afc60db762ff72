package deadlock

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Link is one wait of a circle. It waits for the next, and the last one for the first.
type Link struct {
	Host, Label, Trace string
	PID                int
	Held               string // the name of the lock that it holds and the one before waits for
	Waiting            string // the name of the lock that it waits for
	Node               string // the queue node with which it holds Held; "" if it holds it by a caller
}

// reading is what one look knows: the waits that are listed, and how to find out more of them.
type reading struct {
	*register
	s      *place.WatchedDesk
	own    map[id]*registration // of this client
	g      *graph
	listed bool // the register was listed once more
	nodes  map[described]found
}

// found is a queue node that was read after the list, and as what kind it counts.
type found struct {
	node driver.Node
	mode queue.Mode
}

// maxRefuted bounds in how many circles one search may find something wrong.
const maxRefuted = 16

// errBounded means that a search has reached a bound.
var errBounded = errors.New("the search for a circle was too long")

// standing is a circle whose waits and nodes a look has read.
type standing struct {
	steps  []step
	links  []Link
	checks []driver.Op // a transaction that has these is applied only if the nodes are as they were read
}

// transaction returns the operations, a delete in front, that remove the registration of the circle's last wait if all else that was read
// of the circle is so. A wait that this client alone knows has no registration below path.
func (c *standing) transaction(path string) (ops []driver.Op) {
	for i, s := range c.steps {
		switch node := s.wait.node; {
		case node == "":
		case i == 0:
			ops = append(ops, driver.DeleteOp(path+"/"+node, driver.AnyVersion))
		default:
			ops = append(ops, driver.CheckOp(path+"/"+node, driver.AnyVersion))
		}
	}
	return append(ops, c.checks...)
}

// stood reports whether what some checks are about was as they say when a transaction of this session was applied, of
// which they were no part. It reads that: none of it comes back, so what is so now was so then.
func (g *register) stood(ctx context.Context, s *place.WatchedDesk, checks []driver.Op) bool {
	return together(len(checks), func(i int) error {
		n, err := s.Session.Read(ctx, "register", checks[i].Path)
		if err == nil && checks[i].Version != driver.AnyVersion && checks[i].Version != n.Stat.Version {
			err = driver.ErrBadVersion
		}
		return err
	}) == nil
}

// search returns a circle of which a wait is the last, one of the shortest; nil if there is none that is confirmed.
func (v *reading) search(ctx context.Context, last *namedWait) (*standing, error) {
	for range maxRefuted {
		circle, bounded := v.g.circle(last)
		switch {
		case bounded:
			return nil, errBounded
		case circle == nil:
			return nil, nil
		}
		if found, err := v.confirm(ctx, circle); err != nil || found != nil {
			return found, err
		}
	}
	return nil, errBounded
}

// confirm reads the registrations and the nodes of a circle; nil if something is wrong, which the graph does not have
// from then on. What is gone takes all of its steps with it, and a node or a point those of all waits that list it:
// else a search would find circle after circle through it, up to its bound.
//
// What it finds was so when the register was listed: all of it was made before, no registration and no node comes
// back, and no node excludes more than before. On a server that lags that may be over. So no wait ends before a
// transaction has checked it: see Detector.commits. Registrations alone do not show it: one stays for a while when a
// lock that it lists was downgraded, or released by a caller in another process, and when others have ended a node or
// its session.
func (v *reading) confirm(ctx context.Context, circle []step) (*standing, error) {
	about, there := make([]description, len(circle)), make([]bool, len(circle))
	if err := together(len(circle), func(i int) (err error) {
		about[i], there[i], err = v.describe(ctx, circle[i].wait)
		return err
	}); err != nil {
		return nil, err
	}
	if i := slices.Index(there, false); i >= 0 {
		return nil, v.drop(ctx, circle[i].wait) // TestCircleBehindManyThatAreOver
	}
	if err := v.fetch(ctx, circle, about); err != nil {
		return nil, err
	}
	if len(circle) > 1 { // TestWaitThatIsACircleIsInALongerOne
		if ends, err := v.endsAlone(ctx, circle, about); err != nil || ends {
			return nil, err
		}
	}
	found := &standing{steps: circle}
	for i, c := range circle {
		behind, held := about[i].Behind[c.behind], about[(i+1)%len(about)].Held[c.held]
		ok, err := v.stands(ctx, c, behind, held, &found.checks)
		if err != nil || !ok {
			return nil, err
		}
		found.links = append(found.links, Link{Host: about[i].Host, PID: about[i].PID, Label: about[i].Label, Trace: about[i].Trace, Waiting: behind.Name})
	}
	for i, c := range circle {
		held := about[(i+1)%len(about)].Held[c.held]
		l := &found.links[(i+1)%len(circle)]
		l.Held, l.Node = held.Name, held.Node
	}
	return found, nil
}

// endsAlone reports whether one of the waits of a circle seems to be a circle by itself, too. If it is one, that wait
// ends, and with it this circle: so another one does not end as well. The graph does not have that wait from then on,
// or else the step to itself.
func (v *reading) endsAlone(ctx context.Context, circle []step, about []description) (bool, error) {
	for i, c := range circle {
		s, ok := v.g.alone(c.wait)
		if !ok {
			continue
		}
		stands, err := v.stands(ctx, s, about[i].Behind[s.behind], about[i].Held[s.held], new([]driver.Op))
		if stands {
			v.g.over[c.wait] = true
		}
		return true, err // else the graph does not have that step any more
	}
	return false, nil
}

// drop takes a wait whose registration is gone out of the graph. The first time it lists the register again,
// and takes out all whose registrations are gone.
func (v *reading) drop(ctx context.Context, w *namedWait) error {
	v.g.over[w] = true
	if v.listed || w.node == "" {
		return nil
	}
	all, err := v.list(ctx, v.s)
	if err != nil {
		return err
	}
	v.listed = true
	there := make(map[string]bool, len(all))
	for _, w := range all {
		there[w.node] = true
	}
	for _, w := range v.g.waits {
		if !there[w.node] {
			v.g.over[w] = true
		}
	}
	return nil
}

// describe reads the registration of a wait.
func (v *reading) describe(ctx context.Context, w *namedWait) (about description, there bool, err error) {
	if w.node == "" {
		r := v.own[w.id]
		return describe(v.cfg.Root, v.cfg.Host, v.cfg.PID, &r.nested), !r.over(), nil
	}
	n, err := v.s.Session.Read(ctx, "register", v.path+"/"+w.node)
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
// exist, and are still of the kinds that say so. What is wrong it takes out of the graph. It appends to checks the
// operations of a transaction which fails if that is not so any more.
func (v *reading) stands(ctx context.Context, s step, behind, held described, checks *[]driver.Op) (bool, error) {
	at, node := s.wait.behind[s.behind], s.next.held[s.held]
	if behind.Path != held.Path { // two locks of one hash
		v.g.refute(s)
		return false, nil
	}
	if held.Node == "" {
		front, err := v.find(ctx, v.s, held.Path, node.zxid)
		if err != nil {
			return false, err
		}
		held.Node = front
	}
	n, mode, err := v.read(ctx, held)
	switch {
	case err != nil:
		return false, err
	case n.Stat.Czxid == 0 || n.Stat.Czxid != node.zxid:
		v.g.nodes[node.node()] = true
		return false, nil
	case !at.mode.Excludes(mode), behind.Node == held.Node && at.zxid != node.zxid+1:
		v.g.refute(s)
		return false, nil
	}
	check := func(e described, n driver.Node) {
		path := v.cfg.Root + e.Path + "/" + e.Node
		if !slices.ContainsFunc(*checks, func(op driver.Op) bool { return op.Path == path }) {
			*checks = append(*checks, driver.CheckOp(path, n.Stat.Version))
		}
	}
	if check(held, n); behind.Node == held.Node {
		return true, nil
	}
	n, mode, err = v.read(ctx, behind)
	if err != nil {
		return false, err
	}
	listed, _, _ := v.cfg.Dialect.Parse(behind.Node)
	if n.Stat.Czxid != at.zxid && n.Stat.Czxid+1 != at.zxid || listed.Kind.Mode == at.mode && mode != at.mode { // or a writer's that has become a reader's; TestPointThatIsGone
		v.g.points[at] = true
		return false, nil
	}
	check(behind, n)
	return true, nil
}

// fetch reads the queue nodes of a circle, at the same time.
func (v *reading) fetch(ctx context.Context, circle []step, about []description) error {
	var all []described
	for i, c := range circle {
		for _, e := range []described{about[i].Behind[c.behind], about[(i+1)%len(about)].Held[c.held]} {
			if _, known := v.nodes[e]; !known && e.Node != "" && !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
	}
	read := make([]found, len(all))
	err := together(len(all), func(i int) (err error) {
		read[i].node, read[i].mode, err = v.register.read(ctx, v.s, all[i])
		return err
	})
	if v.nodes == nil {
		v.nodes = make(map[described]found)
	}
	for i, e := range all {
		if err == nil {
			v.nodes[e] = read[i]
		}
	}
	return err
}

// together calls f with each number below n, all at the same time, and returns when they have returned.
func together(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return cmp.Or(errs...)
}

// read is register.read for a node that may have been fetched.
func (v *reading) read(ctx context.Context, e described) (driver.Node, queue.Mode, error) {
	if f, known := v.nodes[e]; known {
		return f.node, f.mode, nil
	}
	return v.register.read(ctx, v.s, e)
}

// read reads a queue node, and as what kind it counts. A node that is gone, or not known, has no transaction.
func (g *register) read(ctx context.Context, s *place.WatchedDesk, e described) (driver.Node, queue.Mode, error) {
	if e.Node == "" {
		return driver.Node{}, 0, nil
	}
	n, err := s.Session.Read(ctx, "register", g.cfg.Root+e.Path+"/"+e.Node)
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

// find returns the name of the node of a queue that a transaction has created; "" if there is none. A node that
// stands behind another one was created after it, so find reads few of them.
func (g *register) find(ctx context.Context, s *place.WatchedDesk, path string, zxid int64) (node string, err error) {
	var names []string
	err = s.Session.Repeat(ctx, "register", func(ctx context.Context, ds driver.Session) error {
		names, _, err = ds.Children(ctx, g.cfg.Root+path)
		return err
	})
	if errors.Is(err, driver.ErrNoNode) || errors.Is(err, driver.ErrNoAuth) {
		err = nil
	}
	var q []queue.Node
	for _, name := range names {
		if c, _, ok := g.cfg.Dialect.Parse(name); ok {
			c.Name = name
			q = append(q, c)
		}
	}
	queue.Sort(q)
	for err == nil && len(q) > 0 {
		var n driver.Node
		i := len(q) / 2
		n, _, err = g.read(ctx, s, described{Path: path, Node: q[i].Name})
		switch at := n.Stat.Czxid; {
		case err != nil:
		case at == 0: // it has gone since
			q = slices.Delete(q, i, i+1) // TestCallersNodeFarBackInItsQueue
		case at == zxid:
			return q[i].Name, nil
		case at < zxid:
			q = q[i+1:]
		default:
			q = q[:i]
		}
	}
	return "", err
}
