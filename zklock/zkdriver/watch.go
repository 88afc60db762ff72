package zkdriver

import (
	"context"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// watches are the session's armed watches. The client does not know them. It would
// keep a channel for every read that sets a watch until the node changes, even if its
// user sets the same watch again after each reconnect. So the client sends a plain
// read, and conn adds the watch flag to the frame. On a new connection this package
// sets the watches itself, before the client may send anything.
type watches struct {
	mu    sync.Mutex
	paths map[string][]*watch // guarded by mu; the armed watches
	over  error               // why the session is over, nil before that; guarded by mu
}

// watch is one channel that waits for the event of its path.
type watch struct {
	path string
	ch   chan driver.Event
	gen  uint64 // generation of the connection on which it was last handed out; guarded by watches.mu
}

// arming is one call of Watch until its reply has been read.
type arming struct {
	path  string
	watch *watch // set by arm, unless the call was given up before; guarded by watches.mu
	fresh bool   // arm made watch for this call; guarded by watches.mu
	gone  bool   // the call was given up; guarded by watches.mu
}

func (w *watches) init() { w.paths = make(map[string][]*watch) }

// arm records that the server has set the watch, on the connection with that
// generation. The connection's reader calls it when it reads the reply. So every
// event of the path that it reads later belongs to this watch, and no earlier event
// does.
//
// If there is a channel that was handed out on an earlier connection and has not
// fired, arm hands it out again: after a reconnect, its receiver has to read again,
// and so comes back for the same node. So a path never has more channels than were
// requested on one connection.
func (w *watches) arm(a *arming, gen uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.gone {
		return
	}
	list := w.paths[a.path]
	if i := slices.IndexFunc(list, func(x *watch) bool { return x.gen != gen }); i >= 0 {
		a.watch = list[i]
		a.watch.gen = gen
		return
	}
	a.watch, a.fresh = &watch{path: a.path, ch: make(chan driver.Event, 1), gen: gen}, true
	if w.over != nil {
		a.watch.end(w.over)
		return
	}
	w.paths[a.path] = append(list, a.watch)
}

// channel returns the channel for the caller of Watch.
func (w *watches) channel(a *arming) <-chan driver.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a.watch.ch
}

// giveUp forgets a call that has failed. If the server sets the watch nevertheless,
// its event is dropped.
func (w *watches) giveUp(a *arming) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a.gone = true
	if a.watch == nil || !a.fresh {
		return
	}
	list := slices.DeleteFunc(w.paths[a.path], func(x *watch) bool { return x == a.watch })
	if len(list) == 0 {
		delete(w.paths, a.path)
		return
	}
	w.paths[a.path] = list
}

// armed returns the paths that have watches, so that a new connection can set them
// again.
func (w *watches) armed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	paths := make([]string, 0, len(w.paths))
	for path := range w.paths {
		paths = append(paths, path)
	}
	return paths
}

// callback processes an event. It never blocks, since the client's reader calls it
// and waits for it.
func (w *watches) callback(ev zk.Event) {
	t, ok := eventType(ev.Type)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, x := range w.paths[ev.Path] {
		x.deliver(driver.Event{Type: t, Path: x.path})
	}
	delete(w.paths, ev.Path)
}

// end notifies all watches that the session is over.
func (w *watches) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return
	}
	w.over = err
	for _, list := range w.paths {
		for _, x := range list {
			x.end(err)
		}
	}
	clear(w.paths)
}

// end delivers an event for the end of the session.
func (x *watch) end(err error) {
	x.deliver(driver.Event{Type: driver.EventSession, Path: x.path, Err: err})
}

// deliver sends the only event of a watch. The watch must not be among the armed
// ones, or must be removed from them by the caller.
func (x *watch) deliver(ev driver.Event) {
	x.ch <- ev
	close(x.ch)
}

// eventType translates the types of events that a watch on data can deliver.
func eventType(t zk.EventType) (driver.EventType, bool) {
	switch t {
	case zk.EventNodeDeleted:
		return driver.EventDeleted, true
	case zk.EventNodeDataChanged:
		return driver.EventChanged, true
	}
	return 0, false
}

// Watch implements driver.Session.
func (s *session) Watch(ctx context.Context, path string) (driver.Node, <-chan driver.Event, error) {
	a := &arming{path: path}
	c := call{op: "watch", path: path, size: pathSize(path) + 1, watch: a}
	if err := checkPath(path, false); err != nil {
		return driver.Node{}, nil, wrap(c, err)
	}
	node, err := run(ctx, s, c, func(conn *zk.Conn) (driver.Node, error) { return getNode(conn, path) })
	if err != nil {
		s.watches.giveUp(a)
		return driver.Node{}, nil, err
	}
	return node, s.watches.channel(a), nil
}
