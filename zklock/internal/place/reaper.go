package place

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Containers of names that were used once would accumulate: servers remove idle
// containers only once a minute, and at a limited rate. So a client removes the
// containers that it has created itself, and no others, when they have been idle for a
// while.
const (
	reapIdle  = 10 * time.Second // how long a name is idle before its container is removed
	reapEvery = 5 * time.Second  // how often the reaper looks for idle names
	reapBatch = 256              // names taken, and so deletes under way, at the same time
	reapGroup = 32               // deletes in one transaction; each that is refused costs one more transaction
)

// reaper removes idle containers that this client has created. It runs while there are
// any that may become idle.
//
// It does not remove a container that another client uses, has written to, or has put
// in the place of ours: servers refuse to delete a container that is not empty, or
// whose data has another version. A container that no client has written to yet has the same
// version as any new znode, so it is read before it is deleted. A client that is about to
// use a removed container creates it again.
type reaper struct {
	parents *parents
	pool    *session.Pool
	inUse   func(path string) bool // whether this client uses the name with that path

	mu      sync.Mutex
	running bool // guarded by mu
}

// start starts the reaper, unless it already runs.
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
			// running is set in one step with takeIdle, so that a start after that step
			// starts the reaper again if this one ends.
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

// remove deletes containers. If a delete fails, the servers remove the container later.
func (r *reaper) remove(idle []parent) {
	on := make(map[*session.Session][]parent)
	for _, p := range idle {
		ctx, cancel := context.WithTimeout(r.pool.Ctx, r.pool.Settings.ConnectTimeout)
		s, err := r.pool.Session(ctx, p.path)
		cancel()
		if err != nil {
			break
		}
		on[s] = append(on[s], p)
	}
	var wg sync.WaitGroup
	for s, parents := range on {
		wg.Go(func() { removeOn(s, parents) })
	}
	wg.Wait() // which ends soon after the sessions' contexts do
}

// removeOn deletes containers on a session, in transactions of their own: a delete of a
// container that is in use is refused, and must not fail any other request.
func removeOn(s *session.Session, idle []parent) {
	var wg sync.WaitGroup
	for group := range slices.Chunk(unchanged(DeskOf(s), idle), reapGroup) {
		writes := make([]*session.Write, len(group))
		for i, p := range group {
			writes[i] = &session.Write{Kind: "reap", Ctx: s.Ctx, Ops: []driver.Op{driver.DeleteOp(p.path, p.version)}, Done: make(chan struct{})}
		}
		wg.Go(func() { s.Commits.Apart(writes) })
	}
	wg.Wait()
}

// unchanged returns those containers that may be deleted by their version. It reads each
// that has version 0, if it knows by which transaction that container was created, and
// leaves out those that it finds replaced, written to or in use.
func unchanged(desk *Desk, idle []parent) []parent {
	var unwritten []int
	for i := range idle {
		if idle[i].version == 0 && idle[i].czxid != 0 {
			unwritten = append(unwritten, i)
		}
	}
	if len(unwritten) == 0 {
		return idle
	}
	// Without the Sync the server may show a container that was replaced long ago.
	ctx, cancel := context.WithTimeout(desk.Ctx, desk.cfg.ConnectTimeout)
	defer cancel()
	synced := desk.Repeat(ctx, "reap", func(ctx context.Context) error { return desk.DS.Sync(ctx, desk.cfg.Root) })
	var next atomic.Int64
	var readers sync.WaitGroup
	changed := make([]bool, len(idle)) // each element is written by one reader
	for range min(maxReads, len(unwritten)) {
		readers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(unwritten)); i = next.Add(1) - 1 {
				p := &idle[unwritten[i]]
				var n driver.Node
				err := synced
				if err == nil {
					err = desk.Repeat(ctx, "reap", func(ctx context.Context) (err error) {
						n, err = desk.DS.Get(ctx, p.path)
						return err
					})
				}
				changed[unwritten[i]] = err != nil || n.Stat.Czxid != p.czxid || n.Stat.Version != 0 || n.Stat.NumChildren > 0
			}
		})
	}
	readers.Wait()
	left := idle[:0]
	for i, p := range idle {
		if !changed[i] {
			left = append(left, p)
		}
	}
	return left
}
