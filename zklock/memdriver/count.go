package memdriver

import (
	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/driver"
)

// ops counts requests.
type ops memcontrol.Ops

// count counts a request that goes to the leader.
func (o *ops) count(r *request) {
	switch r.kind {
	case requestSync:
		o.Syncs++
	case requestMulti:
		o.Multis++
		o.MultiOps += len(r.ops)
	case requestWrite:
		switch r.ops[0].Kind {
		case driver.OpCreate:
			o.Creates++
		case driver.OpDelete:
			o.Deletes++
		case driver.OpSet:
			o.Sets++
		}
	}
}

// countRead counts a request that a server answers alone.
func (o *ops) countRead(k requestKind) {
	switch k {
	case requestGet:
		o.Gets++
	case requestWatch:
		o.Watches++
	case requestChildren:
		o.Children++
	case requestWatchChildren:
		o.WatchChildren++
	case requestWatchExists:
		o.WatchExists++
	}
}

// Ops implements memcontrol.Controls.
func (e controls) Ops() memcontrol.Ops {
	e.mu.Lock()
	defer e.mu.Unlock()
	return memcontrol.Ops(e.ops)
}

// WatchCount implements memcontrol.Controls.
func (e controls) WatchCount() int {
	n := 0
	for _, waiting := range e.Watched() {
		n += waiting
	}
	return n
}

// Watched implements memcontrol.Controls.
func (e controls) Watched() map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	counts := make(map[string]int)
	for _, s := range e.servers {
		for on, waiting := range s.watches {
			counts[on.path] += len(waiting)
		}
	}
	return counts
}

// Sessions returns the ids of the leader's sessions, sorted. Without a leader it
// returns none.
func (e *Ensemble) Sessions() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known()
}

// Servers implements memcontrol.Controls.
func (e controls) Servers() []string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.addr()
	}
	return addrs
}

// Leader returns the number of the server that leads a majority, or -1. It does not
// return a deposed server that has not noticed yet.
func (e *Ensemble) Leader() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.acting(); l != nil {
		return l.srv.index
	}
	return -1
}
