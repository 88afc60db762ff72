package memdriver

import "github.com/zklock/go-zklock/zklock/driver"

// Ops counts the requests that clients have made to the ensemble's servers, both
// executed and refused ones.
type Ops struct {
	// Creates is the number of single creates.
	Creates int

	// Deletes is the number of single deletes.
	Deletes int

	// Sets is the number of single sets of data.
	Sets int

	// Multis is the number of transactions.
	Multis int

	// MultiOps is the number of operations in all transactions together.
	MultiOps int

	// Gets is the number of reads of a znode without a watch.
	Gets int

	// Watches is the number of reads of a znode that asked for a watch.
	Watches int

	// WatchChildren is the number of lists of children that asked for a watch.
	WatchChildren int

	// WatchExists is the number of questions whether a znode exists. All of them ask for a
	// watch.
	WatchExists int

	// Children is the number of lists of children without a watch.
	Children int

	// Syncs is the number of syncs.
	Syncs int

	// Pings is the number of clients' pings.
	Pings int

	// Events is the number of watch events that were sent to clients.
	Events int
}

// Writes returns how many transactions, single or not, clients have requested.
func (o Ops) Writes() int { return o.Creates + o.Deletes + o.Sets + o.Multis }

// count counts a request that goes to the leader.
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

// countRead counts a request that a server answers alone.
func (o *Ops) countRead(k requestKind) {
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

// Ops returns the present counts.
func (e *Ensemble) Ops() Ops {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ops
}

// WatchCount returns how many watches are armed: one for each pair of connection and
// path, and another one if the connection also watches the path's children.
func (e *Ensemble) WatchCount() int {
	n := 0
	for _, waiting := range e.Watched() {
		n += waiting
	}
	return n
}

// Watched returns how many watches are armed on each path that is watched.
func (e *Ensemble) Watched() map[string]int {
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

// Servers returns the servers' addresses, as sessions report them.
func (e *Ensemble) Servers() []string {
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
