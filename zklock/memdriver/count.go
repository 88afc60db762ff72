package memdriver

import "github.com/zklock/go-zklock/zklock/driver"

// Ops counts what clients have asked the ensemble's servers to do, executed or
// refused.
type Ops struct {
	// Creates is how many single creates there were.
	Creates int

	// Deletes is how many single deletes there were.
	Deletes int

	// Sets is how many times data was set singly.
	Sets int

	// Multis is how many transactions there were.
	Multis int

	// MultiOps is how many operations they had together.
	MultiOps int

	// Gets is how many times a znode was read without arming a watch.
	Gets int

	// Watches is how many times a watch was asked for with a read.
	Watches int

	// Children is how many times children were listed.
	Children int

	// Syncs is how many syncs there were.
	Syncs int

	// Pings is how many times clients showed that they live.
	Pings int

	// Events is how many watch events were sent to clients.
	Events int
}

// Writes is how many transactions clients have asked for.
func (o Ops) Writes() int { return o.Creates + o.Deletes + o.Sets + o.Multis }

// count takes a request that goes to the leader into account.
func (o *Ops) count(r *request) {
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

// Ops returns the counts so far.
func (e *Ensemble) Ops() Ops {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ops
}

// WatchCount returns how many watches are armed: one for each connection and
// path.
func (e *Ensemble) WatchCount() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, s := range e.servers {
		for _, waiting := range s.watches {
			n += len(waiting)
		}
	}
	return n
}

// Sessions returns the ids of the sessions that the leader keeps, sorted; none
// while there is no leader.
func (e *Ensemble) Sessions() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known()
}

// Servers returns the servers' addresses, as sessions report them.
func (e *Ensemble) Servers() []string {
	addrs := make([]string, len(e.servers))
	for i, s := range e.servers {
		addrs[i] = s.addr()
	}
	return addrs
}

// Leader returns the number of the server that leads a majority, or -1. A
// server that was deposed and has not noticed is not meant.
func (e *Ensemble) Leader() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.acting(); l != nil {
		return l.srv.index
	}
	return -1
}
