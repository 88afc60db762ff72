package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// breakup is the end of a place that an operator broke.
//
// From then on nothing is promised about the locks of the place, except when they end. The client
// watches the node a sixth of the session timeout after the grant at the latest, and so learns of
// the deletion. Until then it may hand the place over inside its process, even if another client
// has the lock by then, whose token is greater. All other holders exclude each other as ever,
// their tokens rise, and none of them loses its lock.
type breakup struct {
	at      time.Time // when its node was deleted
	granted time.Time // when a check first saw it granted; zero: none has
	behind  string    // an excluding node that was ahead of it when it was deleted; "": none was
}

// spot is a place of a name, as a token shows it.
type spot struct {
	name string
	zxid int64
}

// learnsIn is more than a client needs to learn of an event, with a request before or after it: of a server next to it, and at a
// distance eight ways more. Two are those from the leader to the client's server, and on to the client. Six are those of a request
// behind a Sync of the same session, for which the leader waits with a commit that it has under way.
func (p *profile) learnsIn() time.Duration { return 25*time.Millisecond + 8*p.latency }

// deadline returns until when locks of the place may last. If other faults keep the client from
// learning of the deletion, its lease ends.
func (b *breakup) deadline(p *profile) time.Time {
	due := corekit.Later(b.at, b.granted.Add(simTimeout/6))
	if p.quiet {
		return due.Add(p.learnsIn())
	}
	return due.Add(2 * simTimeout)
}

// target is a queue node that an operator has chosen.
type target struct {
	name, node string
	zxid       int64
	owner      int64     // its session
	granted    time.Time // when its place was granted; zero: it was not
}

// path returns the node's path.
func (t target) path() string { return "/zklock/" + t.name + "/" + t.node }

func (t target) String() string { return withoutGUID(t.path()) }

// targets returns all queue nodes, in an order that does not depend on GUIDs.
func (m *model) targets() (all []target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	for dir, nodes := range m.dirs {
		for node, n := range nodes {
			all = append(all, target{strings.TrimPrefix(dir, "/zklock/"), node, n.zxid, n.owner, n.granted})
		}
	}
	slices.SortFunc(all, func(a, b target) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// choose chooses one of the queue nodes, often the one whose place was granted last. It returns
// false if there is none.
func (w *world) choose(all []target) (t target, ok bool) {
	if len(all) == 0 {
		return t, false
	}
	if w.rng.IntN(2) == 0 {
		return slices.MaxFunc(all, func(a, b target) int { return a.granted.Compare(b.granted) }), true
	}
	return all[w.rng.IntN(len(all))], true
}

// breakPlace has a client break a place. Sometimes the zxid is not that of the node, and Break
// has to leave the node alone.
func (w *world) breakPlace(p *process) string {
	t, ok := w.choose(w.model.targets())
	if !ok {
		return "there is none"
	}
	wrong := w.rng.IntN(8) == 0
	if wrong {
		t.zxid++
	} else {
		w.model.doom(t)
	}
	c := p.client
	w.helpers.Go(func() {
		err := c.Break(background, t.name, fmt.Sprintf("%s@%#x", t.node, t.zxid))
		w.trace.note("client %d: broke %v: %v", p.index, t, class(err))
		w.expect("break", err)
		switch {
		case err != nil:
		case wrong:
			w.model.violate("break", "Break of %v@%#x has found a node, although the zxid is wrong", t, t.zxid)
		case w.model.has(t):
			w.model.violate("break", "Break of %v@%#x has returned nil, but the node is in the queue", t, t.zxid)
		}
	})
	return fmt.Sprintf("%v@%#x by client %d", t, t.zxid, p.index)
}

// revokePlace has a client ask for a place.
func (w *world) revokePlace(p *process) string {
	t, ok := w.choose(w.model.targets())
	if !ok {
		return "there is none"
	}
	c := p.client
	w.helpers.Go(func() {
		err := c.Revoke(background, t.name, t.node, "please")
		w.trace.note("client %d: revoked %v: %v", p.index, t, class(err))
		w.expect("revoke", err)
	})
	return fmt.Sprintf("%v by client %d", t, p.index)
}

// expect checks the error of an operator's call.
func (w *world) expect(what string, err error) {
	for _, known := range []error{nil, driver.ErrNoNode, zklock.ErrUnavailable, zklock.ErrClosed} {
		if errors.Is(err, known) {
			return
		}
	}
	w.model.violate("error", "%s: %v", what, err)
}

// doom records that an operator begins to delete a node.
func (m *model) doom(t target) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := m.dirs["/zklock/"+t.name][t.node]; n != nil {
		n.doomed = true
	}
}

// has reports whether a node is in the queue.
func (m *model) has(t target) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	return m.dirs["/zklock/"+t.name][t.node] != nil
}

// brokenLocked records the end of a node that an operator wanted to delete, also if its own
// client was faster.
func (m *model) brokenLocked(dir string, n *queueNode, at time.Time) {
	name := strings.TrimPrefix(dir, "/zklock/")
	m.breakups[spot{name, n.zxid}] = &breakup{at: at, granted: n.granted, behind: m.aheadLocked(dir, n)}
	now := m.history.tick()
	for _, g := range m.handles {
		if _, ok := g.modes[name]; ok && g.lock.Token().Zxid == n.zxid && !g.back {
			if g.ended == 0 {
				m.history.broken(g, name, now)
			}
			g.isBroken(name, now)
		}
	}
}

// isBroken records that g's place of a name is broken.
func (g *grip) isBroken(name string, now int64) {
	if g.gone = append(g.gone, name); g.broken == 0 {
		g.broken = now
	}
}

// placedLocked records that g was granted its places. Some of them may be broken already.
func (m *model) placedLocked(g *grip) {
	for name := range g.modes {
		if n := m.nodeLocked(g, name); n != nil && n.granted.IsZero() {
			n.granted = time.Now()
			m.admittedLocked(g, n)
		}
		b := m.breakups[spot{name, g.lock.Token().Zxid}]
		if b == nil {
			continue
		}
		if b.behind != "" && b.granted.IsZero() && g.modes[name] == zklock.Exclusive && !g.joined {
			m.violateLocked("exclusion", "%s: %v was granted after its node was deleted while %s was ahead", name, g, b.behind)
		}
		if g.isBroken(name, m.history.tick()); b.granted.IsZero() {
			b.granted = time.Now()
		}
		if !g.joined && g.lock.Token().Compare(m.writer[name]) < 0 {
			m.w.tally.stale++
		}
	}
	if !m.w.p.operator {
		m.endsLocked(g)
	}
}

// endsLocked checks that the lock of a broken place ends.
func (m *model) endsLocked(g *grip) {
	for _, name := range g.gone {
		b := m.breakups[spot{name, g.lock.Token().Zxid}]
		if now := time.Now(); now.After(b.deadline(&m.w.p)) && g.lock.Err() == nil {
			m.violateLocked("break", "%s: the holder of %v was not notified that it is over, %v after its node was deleted, and %v after the grant",
				name, g, now.Sub(b.at), now.Sub(b.granted))
		}
	}
}

// aheadLocked returns a node that an exclusive one has to wait for.
func (m *model) aheadLocked(dir string, n *queueNode) string {
	if n.mode != zklock.Exclusive {
		return ""
	}
	for node, o := range m.dirs[dir] {
		if o != n && o.seq < n.seq {
			return node
		}
	}
	return ""
}
