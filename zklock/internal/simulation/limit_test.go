package simulation

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// asking is an acquisition under way. For each queue it knows the greatest number of contenders
// since it began. Its own node is included. The first node of a queue is left out if it may be
// kept.
type asking struct {
	most map[string]int // by the lock's znode
	sure bool           // its client can have learnt of no state of the queue before that
}

// asks records that an acquisition begins, in runs with max_contenders.
func (m *model) asks(g *grip) *asking {
	if m.w.p.limit == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	a := &asking{most: map[string]int{}, sure: !m.w.p.operator && !m.w.p.breaker}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	for name := range g.modes {
		dir := "/zklock/" + name
		a.most[dir] = m.countedLocked(dir)
		for _, n := range m.dirs[dir] {
			// If another goroutine of the client gives up, this acquisition may go on with
			// its node, and with what the client has read.
			a.sure = a.sure && m.w.owners[n.owner] != g.worker.p
		}
	}
	m.asking = append(m.asking, a)
	return a
}

// joinedLocked records that a contender has come.
func (m *model) joinedLocked(dir string) {
	for _, a := range m.asking {
		if most, ok := a.most[dir]; ok {
			a.most[dir] = max(most, m.countedLocked(dir))
		}
	}
}

// countedLocked returns how many contenders of a queue count for max_contenders: all but the
// first one, if it may be kept.
func (m *model) countedLocked(dir string) int {
	var first *queueNode
	for _, n := range m.dirs[dir] {
		if first == nil || n.seq < first.seq {
			first = n
		}
	}
	if first != nil && first.keep {
		return len(m.dirs[dir]) - 1
	}
	return len(m.dirs[dir])
}

// answered checks an acquisition that has ended: it was not refused if there was room all the
// time.
func (m *model) answered(a *asking, g *grip, err error) {
	if a == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUpLocked()
	m.asking = slices.DeleteFunc(m.asking, func(other *asking) bool { return other == a })
	if !errors.Is(err, zklock.ErrTooManyWaiters) {
		return
	}
	m.w.tally.refused++
	room := true
	for _, most := range a.most {
		room = room && most <= m.w.p.limit
	}
	if a.sure && room {
		m.violateLocked("limit", "worker %d was refused %v (%v), but the queues never had more than %v contenders", g.worker.id, g.modes, err, a.most)
	}
}

// crowdLocked marks the nodes that a transaction has created in a queue that is too long, if the
// reply says so: it has the number of children if the transaction sets the znode of the name. A
// waiter that queues again, and deletes its old node with the same transaction, is not refused.
func (m *model) crowdLocked(tx *memcontrol.Transaction) {
	for _, c := range tx.Changes {
		if c.Kind != driver.OpSet || c.Owner != 0 || m.countedLocked(c.Path) <= m.w.p.limit {
			continue
		}
		if slices.ContainsFunc(tx.Changes, func(other memcontrol.Change) bool {
			return other.Kind == driver.OpDelete && strings.HasPrefix(other.Path, c.Path+"/")
		}) {
			continue
		}
		for _, n := range m.dirs[c.Path] {
			if n.zxid == tx.Zxid {
				n.crowd = len(m.dirs[c.Path]) - m.w.p.limit
			}
		}
	}
}

// leftLocked records that a contender has left. If one node is too many, the client lists the
// queue, and counts those that are there then.
func (m *model) leftLocked(dir string, at time.Time) {
	for _, n := range m.dirs[dir] {
		if n.crowd == 1 && (!m.w.p.quiet || at.Sub(n.born) < m.w.p.learnsIn()) {
			n.crowd = 0
		}
	}
}

// admittedLocked checks that the client did not ignore how many contenders there were, when a
// place is granted for the first time. After a lost reply the client counts later.
func (m *model) admittedLocked(g *grip, n *queueNode) {
	if n.crowd > 0 && g.worker.p.sought.Load() < int64(n.born.Sub(m.w.began)) {
		m.violateLocked("limit", "%v was granted, but it was created as the contender %d of %d", g, m.w.p.limit+n.crowd, m.w.p.limit)
	}
}
