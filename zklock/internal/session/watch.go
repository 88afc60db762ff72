package session

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
)

// watches shares one watch for each path among all waiters of a session on that path; the
// watches on a path's data, on its children and on its existence are different ones. A
// separate watch for each waiter would cost memory in the server and in the client, and
// ZooKeeper's clients cannot take a watch back.
//
// An entry stays when its last waiter has left, for the next waiter, and is removed when it
// has fired. So there are never more entries than paths that were waited on and still
// exist, or whose creation was waited for.
type watches struct {
	r *requests

	mu      mutex.Mutex[mutex.Inner]
	byKey   map[watchKey]*Watched // guarded by mu
	sweepAt int                   // guarded by mu; fired entries are removed when byKey is as large
}

// watchKey is what a watch is on.
type watchKey struct {
	path string
	of   watchKind
}

// watchKind says which request of the driver arms a watch.
type watchKind uint8

const (
	ofData watchKind = iota
	ofChildren
	ofExistence
)

// Watched is one armed watch.
type Watched struct {
	key    watchKey
	arming chan struct{} // guarded by watches.mu; closed, and removed, once armed is set
	armed  atomic.Bool   // the fields below are set

	Node  driver.Node // of a watch on data
	Found bool        // of a watch on existence: the znode exists
	Gen   uint64      // generation of the connection that it was read and armed on; 0: not certain
	err   error
	Event <-chan driver.Event // has one event, for the first that receives, and is then closed

	fired atomic.Pointer[driver.Event] // set by the goroutine that received it
}

const minSweep = 64

// Watch reads path and arms a watch on it, or joins a watch that was armed on the present
// connection and has not fired. In the second case the data that was read then is still
// true, or an event is about to report its change. read says that this call has read the
// data, or asked for it, and not an earlier call that it has joined. If the znode does not exist, the error matches ErrNoNode, and nothing is armed.
func (ws *watches) Watch(ctx context.Context, path string) (w *Watched, read bool, err error) {
	return ws.join(ctx, watchKey{path, ofData}, func(ctx context.Context, ds driver.Session, w *Watched) (event <-chan driver.Event, err error) {
		w.Node, event, err = ds.Watch(ctx, path)
		return event, err
	})
}

// WatchChildren lists the children of path and arms a watch on them, or joins such a watch
// and lists them then: an entry keeps no names, which may be many. In both cases a later
// change of the children is about to fire the watch.
func (ws *watches) WatchChildren(ctx context.Context, path string) (w *Watched, names []string, err error) {
	w, read, err := ws.join(ctx, watchKey{path, ofChildren}, func(ctx context.Context, ds driver.Session, _ *Watched) (event <-chan driver.Event, err error) {
		names, _, event, err = ds.WatchChildren(ctx, path)
		return event, err
	})
	if err != nil || read {
		return w, names, err
	}
	err = ws.r.Repeat(ctx, "list", func(ctx context.Context, ds driver.Session) (err error) {
		names, _, err = ds.Children(ctx, path)
		return err
	})
	return w, names, err
}

// WatchExists asks whether path exists and arms a watch on that, or joins such a watch that
// was armed on the present connection and has not fired.
func (ws *watches) WatchExists(ctx context.Context, path string) (w *Watched, err error) {
	w, _, err = ws.join(ctx, watchKey{path, ofExistence}, func(ctx context.Context, ds driver.Session, w *Watched) (event <-chan driver.Event, err error) {
		_, w.Found, event, err = ds.WatchExists(ctx, path)
		return event, err
	})
	return w, err
}

// join returns the armed watch on a key. If there is none, it arms one with request, which
// also sets the fields of the entry that have what was read.
func (ws *watches) join(ctx context.Context, key watchKey, request func(context.Context, driver.Session, *Watched) (<-chan driver.Event, error)) (w *Watched, read bool, err error) {
	r := ws.r
	for {
		gen, _ := r.ds.Conn()
		ws.mu.Lock()
		w := ws.byKey[key]
		if w == nil || w.stale(gen) {
			w = &Watched{key: key, arming: make(chan struct{})}
			ws.byKey[key] = w
			if len(ws.byKey) >= ws.sweepAt { // their number has doubled, so that this costs little on average
				maps.DeleteFunc(ws.byKey, func(_ watchKey, w *Watched) bool { return w.armed.Load() && (w.err != nil || w.Fires() != nil) })
				ws.sweepAt = max(minSweep, 2*len(ws.byKey))
			}
			ws.mu.Unlock()
			ws.arm(ctx, w, request)
			return w, true, w.err
		}
		arming := w.arming
		ws.mu.Unlock()

		if arming != nil {
			if err := r.Await(ctx, arming); err != nil {
				return nil, false, err
			}
		}
		// The goroutine that armed it may have failed because its own context ended. Then
		// this caller tries itself.
		switch {
		case w.err == nil && !w.stale(gen):
			return w, false, nil
		case arming != nil && key.of == ofData && errors.Is(w.err, driver.ErrNoNode):
			return nil, false, w.err // the znode will not be there again: its name has a sequence number
		}
		ws.Drop(w)
	}
}

// arm does the read of a new entry.
func (ws *watches) arm(ctx context.Context, w *Watched, request func(context.Context, driver.Session, *Watched) (<-chan driver.Event, error)) {
	r, purpose := ws.r, "watch"
	if w.key.of == ofChildren {
		purpose = "list"
	}
	w.err = driver.ErrNotSent // for those that join, if the Operation hook panics
	defer func() {
		if w.err != nil {
			ws.Drop(w)
		}
		ws.mu.Lock()
		defer ws.mu.Unlock()
		w.armed.Store(true)
		close(w.arming)
		w.arming = nil // there may be very many watches
	}()
	w.err = r.Repeat(ctx, purpose, func(ctx context.Context, ds driver.Session) error {
		before, _ := ds.Conn()
		event, err := request(ctx, ds, w)
		if err != nil {
			return err
		}
		// A request may wait for the next connection before it is sent. So its
		// connection is certain only if there is no other one afterwards. Else
		// the entry belongs to no connection: each waiter reads again, and does not combine
		// this read with what it has seen on an earlier connection.
		if after, _ := ds.Conn(); after != before {
			before = 0
		}
		w.Event, w.Gen = event, before
		return nil
	})
}

// stale reports whether an armed entry must not be used: it has failed or fired, or it belongs to
// an older connection, whose watch may not be set on the present one.
func (w *Watched) stale(gen uint64) bool {
	return w.armed.Load() && (w.err != nil || w.Gen != gen || w.Fires() != nil)
}

// Fires returns the event if the watch has fired, and else nil.
func (w *Watched) Fires() *driver.Event {
	select {
	case e, ok := <-w.Event:
		w.Received(e, ok)
	default:
	}
	return w.fired.Load()
}

// Received records what a waiter received from w.Event. The first receiver gets the event, and
// the others get a closed channel. If one of the others calls Received before the first one does, it
// is only known that something happened.
func (w *Watched) Received(e driver.Event, ok bool) {
	if ok {
		w.fired.Store(&e)
	} else if w.fired.Load() == nil {
		w.fired.CompareAndSwap(nil, &driver.Event{Type: driver.EventChanged, Path: w.key.path})
	}
}

// Drop removes an entry, if it is still the entry of its path.
func (ws *watches) Drop(w *Watched) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byKey[w.key] == w {
		delete(ws.byKey, w.key)
	}
}
