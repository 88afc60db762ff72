package session

import (
	"context"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// watches shares one watch a path among all who wait on it in a session: a
// server and its clients keep a list of watchers for each, and clients cannot
// take a watch back.
//
// An entry stays when its last waiter has left, for the next one; it goes when
// it has fired. So there are never more than paths that were waited on and
// still exist, and a cancelled wait leaves nothing that was not there before.
type watches struct {
	s *Session

	mu      sync.Mutex
	byPath  map[string]*Watched // guarded by mu
	sweepAt int                 // guarded by mu; size at which fired entries are looked for
}

// Watched is one armed watch.
type Watched struct {
	path  string
	armed chan struct{} // closed once the fields below are set

	Node  driver.Node
	Gen   uint64 // connection generation on which it was read and armed; 0: not certain
	err   error
	Event <-chan driver.Event // one event for the first to receive, then closed

	mu    sync.Mutex
	fired *driver.Event // guarded by mu; set by whoever received it
}

const minSweep = 64

// Watch reads path and arms a watch on it, or joins one that was armed on the
// present connection and has not fired: what was read then still holds, or an
// event says so. read says that it was read by this call. ErrNoNode arms nothing.
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
		// Whoever armed it may have failed for a reason of its own, its
		// context for example: then it is this caller's turn.
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
		// A request may wait for the next connection before it is sent, so which
		// one it was read on is certain only if there was no other meanwhile.
		// Else it counts for none: whoever waits on it reads once more, and what
		// was seen on an earlier connection is not taken to go with it.
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

// stale reports whether an armed entry is of no more use: it has fired, or
// belongs to an older connection, whose watches may not have been taken over.
func (w *Watched) stale(gen uint64) bool {
	select {
	case <-w.armed:
	default:
		return false
	}
	return w.err != nil || w.Gen != gen || w.fires() != nil
}

// fires returns the event if it has fired.
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

// Received records what a waiter got from w.Event, and returns what is known.
func (w *Watched) Received(e driver.Event, ok bool) driver.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noteLocked(e, ok)
	return *w.fired
}

// noteLocked keeps the event. The first to receive has it and the others a
// closed channel; one of them may come here before the first, and then knows
// only that something happened.
func (w *Watched) noteLocked(e driver.Event, ok bool) {
	switch {
	case ok:
		w.fired = &e
	case w.fired == nil:
		w.fired = &driver.Event{Type: driver.EventChanged, Path: w.path}
	}
}

// Drop takes an entry out, if it is still the one for its path.
func (ws *watches) Drop(w *Watched) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byPath[w.path] == w {
		delete(ws.byPath, w.path)
	}
}

// sweepLocked removes entries that fired with nobody waiting. It looks at all
// of them each time their number has doubled, so its cost is spread.
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
