package zkdriver

import (
	"context"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// watches are the session's armed watches. Events come from the client's
// callback, which misses none, and not from a channel for each watch, which
// would cost a goroutine each.
type watches struct {
	mu    sync.Mutex
	paths map[string][]*watch // guarded by mu
	set   int                 // those of them whose reply was read; guarded by mu
	over  error               // the session's end; guarded by mu
	wg    sync.WaitGroup
}

// watch is one watch.
type watch struct {
	path  string
	ch    chan driver.Event
	set   bool // the reply was read; guarded by watches.mu
	armed bool // set, and events for the path are its own; guarded by watches.mu
	early bool // an event for the path came before the reply was seen; guarded by watches.mu
}

func (w *watches) init() { w.paths = make(map[string][]*watch) }

// any reports whether the client has watches, which it will set again.
func (w *watches) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.set > 0
}

// add registers a watch before its request is sent, or an event right behind
// the reply would be missed.
func (w *watches) add(path string) *watch {
	x := &watch{path: path, ch: make(chan driver.Event, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		x.deliver(driver.Event{Type: driver.EventSession, Path: path, Err: w.over})
		return x
	}
	w.paths[path] = append(w.paths[path], x)
	return x
}

// drop removes a watch that was not armed.
func (w *watches) drop(x *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.removeLocked(x)
}

func (w *watches) removeLocked(x *watch) bool {
	list := w.paths[x.path]
	for i, y := range list {
		if x == y {
			w.forgetLocked(x)
			if list = append(list[:i], list[i+1:]...); len(list) == 0 {
				delete(w.paths, x.path)
			} else {
				w.paths[x.path] = list
			}
			return true
		}
	}
	return false
}

// forgetLocked counts a watch out that is removed.
func (w *watches) forgetLocked(x *watch) {
	if x.set {
		w.set--
	}
}

// arm takes in that the server has set the watch. If an event for the path
// came while the reply was on its way to here, only the client knows whether
// it was this watch's or an older one's; its channel tells.
func (w *watches) arm(x *watch, client <-chan zk.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return // it has its event already
	}
	x.set, x.armed = true, !x.early
	w.set++
	if x.early {
		w.wg.Go(func() { w.follow(x, client) })
	}
}

// follow waits for the client's event of a watch. It comes at the latest when
// the client is closed.
func (w *watches) follow(x *watch, client <-chan zk.Event) {
	ev := <-client
	t, ok := eventType(ev.Type)
	w.mu.Lock()
	defer w.mu.Unlock()
	if ok && w.removeLocked(x) {
		x.deliver(driver.Event{Type: t, Path: x.path})
	}
}

// callback takes in an event. The client calls it before it sees to its own
// watches, with locks held, and waits for it: it never blocks.
func (w *watches) callback(ev zk.Event) {
	t, ok := eventType(ev.Type)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var rest []*watch
	for _, x := range w.paths[ev.Path] {
		if !x.armed {
			x.early = true
			rest = append(rest, x)
			continue
		}
		w.forgetLocked(x)
		x.deliver(driver.Event{Type: t, Path: x.path})
	}
	if len(rest) > 0 {
		w.paths[ev.Path] = rest
	} else {
		delete(w.paths, ev.Path)
	}
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
			x.deliver(driver.Event{Type: driver.EventSession, Path: x.path, Err: err})
		}
	}
	clear(w.paths)
	w.set = 0
}

// wait joins the goroutines that follow the client's channels.
func (w *watches) wait() { w.wg.Wait() }

// deliver sends the one event of a watch that was removed or is about to be.
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
	c := call{op: "watch", path: path, size: pathSize(path) + 1}
	if err := checkPath(path, false); err != nil {
		return driver.Node{}, nil, wrap(c, err)
	}
	type armed struct {
		node driver.Node
		ch   <-chan driver.Event
	}
	a, err := run(ctx, s, c, func(conn *zk.Conn) (armed, error) {
		x := s.watches.add(path)
		data, stat, events, err := conn.GetW(path)
		if err != nil {
			s.watches.drop(x)
			return armed{}, err
		}
		s.watches.arm(x, events)
		return armed{driver.Node{Data: data, Stat: convertStat(stat)}, x.ch}, nil
	})
	return a.node, a.ch, err
}
