package session

import (
	"context"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// watches shares one watch for each path among all waiters of a session on that path. A
// separate watch for each waiter would cost memory in the server and in the client, and
// ZooKeeper's clients cannot take a watch back.
//
// An entry stays when its last waiter has left, for the next waiter, and is removed when it
// has fired. So there are never more entries than paths that were waited on and still
// exist, and a cancelled wait leaves nothing behind that was not there before.
type watches struct {
	s *Session

	mu      sync.Mutex
	byPath  map[string]*Watched // guarded by mu
	sweepAt int                 // guarded by mu; size of byPath at which fired entries are removed
}

// Watched is one armed watch.
type Watched struct {
	path  string
	armed chan struct{} // closed once the fields below are set

	Node  driver.Node
	Gen   uint64 // generation of the connection on which it was read and armed; 0: not certain
	err   error
	Event <-chan driver.Event // has one event, for the first that receives, and is then closed

	mu    sync.Mutex
	fired *driver.Event // guarded by mu; set by the goroutine that received it
}

const minSweep = 64

// Watch reads path and arms a watch on it, or joins a watch that was armed on the present
// connection and has not fired. In the second case the data that was read then is still
// true, or an event is about to report its change. read says that this call has read the
// data. If the znode does not exist, the error matches ErrNoNode, and nothing is armed.
func (ws *watches) Watch(ctx context.Context, path string) (w *Watched, read bool, err error) {
	s := ws.s
	for {
		gen, _ := s.DS.Conn()
		ws.mu.Lock()
		if ws.byPath == nil {
			ws.byPath, ws.sweepAt = make(map[string]*Watched), minSweep
		}
		w := ws.byPath[path]
		if w == nil || w.stale(gen) {
			w = &Watched{path: path, armed: make(chan struct{})}
			ws.byPath[path] = w
			ws.sweepLocked()
			ws.mu.Unlock()
			ws.arm(ctx, w)
			return w, true, w.err
		}
		ws.mu.Unlock()

		began := lease.Now()
		select {
		case <-w.armed:
		case <-ctx.Done():
			return nil, false, s.WaitEnded(ctx, began)
		}
		// The goroutine that armed it may have failed for a reason of its own, for
		// example because its context ended. Then this caller tries itself.
		if w.err == nil && !w.stale(gen) {
			return w, false, nil
		}
		ws.Drop(w)
	}
}

// arm does the read of a new entry.
func (ws *watches) arm(ctx context.Context, w *Watched) {
	s := ws.s
	w.err = s.Repeat(ctx, "watch", func(ctx context.Context) error {
		before, _ := s.DS.Conn()
		node, event, err := s.DS.Watch(ctx, w.path)
		if err != nil {
			return err
		}
		// A request may wait for the next connection before it is sent. So the
		// connection on which it was read is certain only if there was no other one
		// meanwhile. If it is not certain, the entry belongs to no connection: each
		// waiter reads again, and does not combine this read with what it has seen on
		// an earlier connection.
		if after, _ := s.DS.Conn(); after != before {
			before = 0
		}
		w.Node, w.Event, w.Gen = node, event, before
		return nil
	})
	if w.err != nil {
		ws.Drop(w)
	}
	close(w.armed)
}

// stale reports whether an armed entry must not be used any more: it has failed or fired,
// or it belongs to an older connection, whose watch may not be set on the present one.
func (w *Watched) stale(gen uint64) bool {
	select {
	case <-w.armed:
	default:
		return false
	}
	return w.err != nil || w.Gen != gen || w.fires() != nil
}

// fires returns the event if the watch has fired, and else nil.
func (w *Watched) fires() *driver.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fired != nil {
		return w.fired
	}
	select {
	case e, ok := <-w.Event:
		w.noteLocked(e, ok)
	default:
	}
	return w.fired
}

// Received records what a waiter received from w.Event. It returns the event, as far as it
// is known.
func (w *Watched) Received(e driver.Event, ok bool) driver.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(e, ok)
	return *w.fired
}

// noteLocked records the event. The first receiver gets it, and the others get a closed
// channel. If one of the others comes here before the first, it is only known that something
// happened.
func (w *Watched) noteLocked(e driver.Event, ok bool) {
	switch {
	case ok:
		w.fired = &e
	case w.fired == nil:
		w.fired = &driver.Event{Type: driver.EventChanged, Path: w.path}
	}
}

// Drop removes an entry, if it is still the entry of its path.
func (ws *watches) Drop(w *Watched) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byPath[w.path] == w {
		delete(ws.byPath, w.path)
	}
}

// sweepLocked removes entries that fired when no waiter was left. It looks at all entries
// each time their number has doubled, so that its cost is small on average.
func (ws *watches) sweepLocked() {
	if len(ws.byPath) < ws.sweepAt {
		return
	}
	for path, w := range ws.byPath {
		select {
		case <-w.armed:
			if w.err != nil || w.fires() != nil {
				delete(ws.byPath, path)
			}
		default:
		}
	}
	ws.sweepAt = max(minSweep, 2*len(ws.byPath))
}
