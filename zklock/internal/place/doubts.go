package place

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// A server may read a create from a connection that the client has given up long ago, and apply it
// then. The client deletes such a node. It lists each name with such a create once a session timeout
// until the horizon has passed, whatever its goroutines do with the name. What ZooKeeper 3.8 and
// 3.9 do with the rest of an old connection:
//
//   - When a session comes back to the same server, that closes the old connection, and reads no
//     more of it. When it comes back to another one, the leader refuses what the old server still
//     forwards: SessionTrackerImpl.checkSession compares the owners, for each operation of a multi.
//   - Two observers of one follower (observerMasterPort) have the same owner, which is that
//     follower, and so has the follower. There the create is applied after the session has moved.
//     It is applied as well while the session has not come back to any server.
//   - NIOServerCnxnFactory closes a connection that is silent for the session timeout, in buckets of
//     zookeeper.nio.sessionlessCnxnTimeout, 10 s by default. NettyServerCnxnFactory closes it when
//     TCP gives up, or when the session ends.
//
// Invariants:
//   - A name leaves doubts only after a list that began after the horizon, or when there are more
//     than maxDoubts, or with the session, whose end removes all its nodes.
//   - lookOut runs while there are doubts, and only then; it ends with the session.
//
// A node that appears after the horizon is deleted by the first session of this client that lists
// its queue: see Znode.strays.
type doubts struct {
	added   chan struct{}            // cap 1: wakes lookOut
	byPath  map[string]*list.Element // guarded by Desk.mu; of *doubt
	byNext  list.List                // guarded by Desk.mu; the one that is listed next is in front
	looking bool                     // guarded by Desk.mu; lookOut runs
}

// doubt is a name below which a create of the session may still be applied.
type doubt struct {
	path  string
	until time.Time // the horizon
	next  time.Time // when it is listed again
}

const (
	// bucket is in which steps servers close silent connections, by default.
	bucket = 10 * time.Second

	// maxDoubts bounds the memory for doubts to some megabytes for each session.
	maxDoubts = 1 << 14

	// maxLookouts is how many doubtful names are listed at the same time.
	maxLookouts = session.MaxLone / 8
)

// horizon returns for how long after it was given up a create may appear. A server reads it within
// a session timeout and a bucket. Then an ensemble that takes longer than a session timeout for a
// commit loses the session.
func (d *Desk) horizon() time.Duration { return 2*d.Timeout + bucket }

// doubt has the names of a place listed until the horizon has passed: at once, if now is true, and
// else from a session timeout on. One of the place's creates has an unknown outcome.
func (d *Desk) doubt(p *Place, now bool) {
	d.mu.Lock()
	for _, c := range p.nodes {
		d.doubts.addLocked(c.dir, now, d.Timeout, d.horizon())
	}
	begins := !d.doubts.looking
	d.doubts.looking = true
	d.mu.Unlock()
	if session.Poke(d.doubts.added); begins {
		d.Spawn(d.lookOut) // refused if the session is over: its nodes go with it
	}
}

// addLocked adds a name, or renews it. The desk's mu is held.
func (ds *doubts) addLocked(path string, now bool, every, horizon time.Duration) {
	at := time.Now()
	e := ds.byPath[path]
	if e == nil {
		if len(ds.byPath) == maxDoubts {
			newest := ds.byNext.Back() // as a rule it has just been listed
			delete(ds.byPath, ds.byNext.Remove(newest).(*doubt).path)
		}
		if ds.byPath == nil {
			ds.byPath = make(map[string]*list.Element)
		}
		e = ds.byNext.PushBack(&doubt{path: path, next: at.Add(every)})
		ds.byPath[path] = e
	}
	x := e.Value.(*doubt)
	if x.until = at.Add(horizon); now {
		x.next = at
		ds.byNext.MoveToFront(e)
	}
}

// lookOut lists doubtful names until there are none.
func (d *Desk) lookOut() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for d.Ctx.Err() == nil {
		due, wait, more := d.dueDoubts()
		switch {
		case !more:
			return
		case len(due) > 0:
			d.lookAt(due)
			continue
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-d.doubts.added:
		case <-d.Ctx.Done():
		}
	}
}

// dueDoubts returns some doubts that are due, and notes when they are due again. If none is, it
// returns the time until the first one is. more is false if there are no doubts: lookOut has to end.
func (d *Desk) dueDoubts() (due []doubt, wait time.Duration, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	ds, now := &d.doubts, time.Now()
	for len(due) < maxLookouts && ds.byNext.Len() > 0 {
		e := ds.byNext.Front()
		x := e.Value.(*doubt)
		if wait = x.next.Sub(now); wait > 0 {
			break
		}
		x.next = now.Add(d.Timeout)
		ds.byNext.MoveToBack(e)
		due = append(due, *x)
	}
	if ds.looking = ds.byNext.Len() > 0; !ds.looking {
		ds.byPath = nil // a map does not shrink
	}
	return due, wait, ds.looking
}

// lookAt lists doubtful names, and takes out those whose horizon had passed before the list. The
// list has late nodes deleted. In an outage it waits, as the session does.
func (d *Desk) lookAt(due []doubt) {
	began := time.Now()
	var lists sync.WaitGroup
	for _, x := range due {
		lists.Go(func() {
			z := Znode{d, x.path}
			err := d.Repeat(d.Ctx, "list", func(ctx context.Context) error {
				_, _, err := z.listOnce(ctx)
				return err
			})
			if began.Before(x.until) || err != nil && !errors.Is(err, driver.ErrNoNode) {
				return
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if e := d.doubts.byPath[x.path]; e != nil && e.Value.(*doubt).until.Equal(x.until) {
				d.doubts.byNext.Remove(e)
				delete(d.doubts.byPath, x.path)
			}
		})
	}
	lists.Wait()
}
