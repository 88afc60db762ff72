package zkdriver

import (
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// watches are the session's armed watches. The client does not know them. The client would keep
// a channel for every read that sets a watch, until the node changes, even if its user sets the
// same watch again after each reconnect. So the client sends a plain read, and conn adds the
// watch flag to the frame. On a new connection this package sets the watches itself, before the
// client may send anything.
type watches struct {
	mu    sync.Mutex
	armed map[watched][]*watch // guarded by mu
	over  error                // why the session is over, nil before that; guarded by mu
}

// watched is what a server watches for a session. For one path a server has at most one
// watch of each list, however many channels wait for it.
type watched struct {
	path string
	list watchList
}

// watchList is a list of watches in a request that sets watches again. After a reconnect a
// server compares each list with the present state in another way.
type watchList int

const (
	// onData watches a node that exists. An exists request on such a node sets it, too.
	onData watchList = iota

	// onCreation watches a node that is missing.
	onCreation

	// onChildren watches the list of a node's children.
	onChildren

	// watchLists is the number of lists.
	watchLists
)

// fired translates an event from a server, and returns the lists whose watches it ends.
func fired(t zk.EventType) (driver.EventType, []watchList) {
	switch t {
	case zk.EventNodeDeleted:
		return driver.EventDeleted, []watchList{onData, onCreation, onChildren}
	case zk.EventNodeDataChanged:
		return driver.EventChanged, []watchList{onData, onCreation}
	case zk.EventNodeCreated:
		return driver.EventCreated, []watchList{onData, onCreation}
	case zk.EventNodeChildrenChanged:
		return driver.EventChildren, []watchList{onChildren}
	}
	return driver.EventSession, nil
}

// watch is one channel that waits for the event of its path.
type watch struct {
	path string
	ch   chan driver.Event
	gen  uint64 // the connection's generation when the channel was last handed out; guarded by watches.mu
}

// arming is one call of a method that sets a watch, until its reply has been read.
type arming struct {
	watched        // its list may change in arm; guarded by watches.mu from then on
	exists  bool   // it is an exists request, which sets a watch on a missing node, too
	watch   *watch // set by arm if the call was not given up before; guarded by watches.mu
	fresh   bool   // arm made watch for this call; guarded by watches.mu
	gone    bool   // the call was given up; guarded by watches.mu
}

func (w *watches) init() { w.armed = make(map[watched][]*watch) }

// arm records that the server has set the watch, on the connection with that
// generation. The connection's reader calls it when it reads the reply. So every
// event of the path that it reads later belongs to this watch, and no earlier event
// does. found says whether the node exists; on a missing node only an exists request
// sets a watch.
//
// If there is a channel that was handed out on an earlier connection and has not
// fired, arm hands it out again: after a reconnect, its receiver must read the same node again.
// So a path never has more channels than were requested on one connection.
func (w *watches) arm(a *arming, found bool, gen uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.gone || !found && !a.exists {
		return
	}
	if !found {
		a.list = onCreation
	}
	list := w.armed[a.watched]
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
	w.armed[a.watched] = append(list, a.watch)
}

// channel returns the channel for the caller.
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
	list := slices.DeleteFunc(w.armed[a.watched], func(x *watch) bool { return x == a.watch })
	if len(list) == 0 {
		delete(w.armed, a.watched)
		return
	}
	w.armed[a.watched] = list
}

// paths returns what is watched, so that a new connection can set the watches again.
func (w *watches) paths() (lists [watchLists][]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.armed {
		lists[key.list] = append(lists[key.list], key.path)
	}
	return lists
}

// callback processes an event. It never blocks, since the client's reader calls it
// and waits for it.
func (w *watches) callback(ev zk.Event) {
	t, lists := fired(ev.Type)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range lists {
		key := watched{ev.Path, list}
		for _, x := range w.armed[key] {
			x.deliver(driver.Event{Type: t, Path: x.path})
		}
		delete(w.armed, key)
	}
}

// end notifies all watches that the session is over.
func (w *watches) end(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over != nil {
		return
	}
	w.over = err
	for _, list := range w.armed {
		for _, x := range list {
			x.end(err)
		}
	}
	clear(w.armed)
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
