package place

import (
	"context"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Containers of names that were used once would pile up: the server removes idle
// ones only every minute, and at a limited rate. So a client removes those that
// it has created itself, and no others, when they have been idle for a while.
const (
	reapIdle  = 10 * time.Second // how long a name is idle before its container goes
	reapEvery = 5 * time.Second
	reapBatch = 256 // names that are looked for, and deletes that are under way, at once
	reapGroup = 32  // deletes in one transaction; those that are refused cost one each
)

// reaper runs while there are containers to come back for. A container that is
// not empty after all, because somebody else uses the name, or that somebody else
// has written to since, or has put in the place of ours, is not removed: the
// server sees to that. One that somebody is about to use is made again by them.
type reaper struct {
	parents *parents
	pool    *session.Pool
	inUse   func(path string) bool // a name of the client's

	mu      sync.Mutex
	running bool // guarded by mu
}

// start makes sure that the reaper runs.
func (r *reaper) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running && r.pool.Spawn(r.run) {
		r.running = true
	}
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
		for {
			// A start that comes after the look finds running false.
			r.mu.Lock()
			idle, more := r.parents.takeIdle(time.Now().Add(-reapIdle), reapBatch, r.inUse)
			r.running = more || len(idle) > 0
			running := r.running
			r.mu.Unlock()
			if !running {
				return
			}
			r.remove(idle)
			if len(idle) < reapBatch {
				break
			}
		}
	}
}

// remove deletes containers, in groups of their own: one that is in use after all is
// refused, which must not concern any other request. What goes wrong is left to the
// server.
func (r *reaper) remove(idle []parent) {
	var wg sync.WaitGroup
	groups := make(map[*session.Session][]*session.Write)
	send := func(s *session.Session) {
		writes := groups[s]
		delete(groups, s)
		wg.Go(func() { s.Commits.Apart(writes) })
	}
	for _, p := range idle {
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
	wg.Wait() // soon: it runs on the sessions' contexts
}
