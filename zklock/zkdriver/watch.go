package zkdriver

import (
	"context"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// watches are the session's armed watches. The client underneath knows nothing of
// them: it would keep a channel for every read that sets a watch, for as long as
// the node does not change, however often a reconnect makes its user set the same
// watch again. It sends a plain read, conn adds the flag to the frame, and on a new
// connection this package sets the watches itself, before the client may send
// anything.
type watches struct {
	mu    sync.Mutex
	paths map[string][]*watch // guarded by mu; the armed watches
	over  error               // the session's end; guarded by mu
}

// watch is one channel that waits for the event of its path.
type watch struct {
	path string
	ch   chan driver.Event
	gen  uint64 // the connection on which it was handed out last; guarded by watches.mu
}

// arming is one call of Watch until its reply was read.
type arming struct {
	path  string
	watch *watch // set by arm, unless the call was given up before; guarded by watches.mu
	fresh bool   // arm made watch for this call; guarded by watches.mu
	gone  bool   // the call was given up; guarded by watches.mu
}

func (w *watches) init() { w.paths = make(map[string][]*watch) }

// arm takes in that the server has set the watch, on the connection with that
// generation. The connection's reader calls it with the reply, so whatever event
// the reader meets afterwards is the watch's own, and none before was.
//
// A channel that was handed out on an earlier connection, and has not fired, is
// handed out again: its reader has reason to read again after a reconnect, and
// comes back for the same node. So there are never more channels for a path than
// were asked for on one connection.
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

// channel returns what the caller of Watch gets.
func (w *watches) channel(a *arming) <-chan driver.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return a.watch.ch
}

// giveUp forgets a call that has failed. What the server sets for it nevertheless
// is met by no channel.
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

// armed returns the paths that have watches, for a new connection to set them again.
func (w *watches) armed() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	paths := make([]string, 0, len(w.paths))
	for path := range w.paths {
		paths = append(paths, path)
	}
	return paths
}

// callback takes in an event. The client's reader calls it and waits for it: it
// never blocks.
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

// end tells all watches that the session is over.
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

// end delivers the session's end.
func (x *watch) end(err error) {
	x.deliver(driver.Event{Type: driver.EventSession, Path: x.path, Err: err})
}

// deliver sends the one event of a watch that is not, or not any more, among the
// armed ones.
func (x *watch) deliver(ev driver.Event) {
	x.ch <- ev
	close(x.ch)
}

// eventType translates what a data watch can deliver.
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
