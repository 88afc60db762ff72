package place

import (
	"context"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Containers of names that were used once would accumulate: servers remove idle containers only
// once a minute, and at a limited rate. So a client removes those that it has created itself.
const (
	reapEvery = 5 * time.Second // how often the reaper looks for idle names
	reapBatch = 256             // names taken, and so deletes under way, at the same time
	reapGroup = 32              // deletes in one transaction; each that is refused costs one more transaction
)

// reaper removes idle containers that this client has created, and forgets those of other
// clients. It runs while any znodes are known: parents starts it.
//
// It does not remove a container that another client uses, has written to, or has put
// in the place of ours: servers refuse to delete a container that is not empty, or
// whose data has another version. A client that is about to use a removed container
// creates it again.
type reaper struct {
	parents *parents
	pool    *session.Pool
	inUse   func(path string) bool // whether this client uses the name with that path
}

func (r *reaper) run() {
	ticker := time.NewTicker(reapEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-r.pool.Ctx.Done():
			return
		}
		for full := true; full; {
			idle, ends := r.parents.takeIdle(time.Now().Add(-reapIdle), reapBatch, r.inUse)
			if ends {
				return
			}
			r.remove(idle)
			full = len(idle) == reapBatch
		}
	}
}

// remove deletes containers of this client, in transactions of their own: a delete of a
// container that is in use is refused, and must not fail any other request. If a delete
// fails, the servers remove the container later.
func (r *reaper) remove(idle []parent) {
	var wg sync.WaitGroup
	groups := make(map[*session.Session][]*session.Write)
	send := func(s *session.Session) {
		writes := groups[s]
		delete(groups, s)
		wg.Go(func() { s.Commits.Apart(writes) })
	}
	for _, p := range idle {
		if !p.createdHere {
			continue
		}
		ctx, cancel := context.WithTimeout(r.pool.Ctx, r.pool.Settings.ConnectTimeout)
		s, err := r.pool.Session(ctx, p.path)
		cancel()
		if err != nil {
			break
		}
		w := &session.Write{Kind: "reap", Ctx: s.Ctx, Ops: []driver.Op{driver.DeleteOp(p.path, p.version)}, Done: make(chan struct{})}
		if groups[s] = append(groups[s], w); len(groups[s]) == reapGroup {
			send(s)
		}
	}
	for s := range groups {
		send(s)
	}
	wg.Wait() // which ends soon after the sessions' contexts do
}
