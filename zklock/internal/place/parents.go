package place

import (
	"container/list"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/mutex"
)

// parents remembers the locks' znodes that are known to exist, so that acquiring a name
// in use takes one round trip. It is a cache: servers remove idle containers at any time, and
// then the create of a queue node fails.
type parents struct {
	mu     mutex.Mutex[mutex.Inner]
	byPath map[string]*list.Element // guarded by mu; of *parent
	recent list.List                // guarded by mu; most recently used first

	released map[string][]chan struct{} // guarded by mu; by path; one for each asynchronous release under way
}

// parent is what is known about a lock's znode.
type parent struct {
	path   string
	marked bool // its data is our mark, and this client may write it: to write the mark again changes nothing

	createdHere bool  // this client has created it, as a container
	warned      bool  // the log has the warning about children that are not contenders
	recalls     uint8 // how often a place below it was recalled for another client, at most maxRecalls

	version    int32     // of the data after this client's last write; unmade if the znode is not known to exist
	releasedOn int64     // the id of the session that this client last released the name on; 0 if it has not
	used       time.Time // when it was last looked up or added, and was known to exist

	// How often in a row this client has used the name alone. The suffix of a sequential node
	// counts the creations below its parent. So if the suffix of a contender follows that of our
	// contender before, nothing was created in between.
	suffix int64 // of our newest contender
	uses   int   // in a row, up to that one; 0 if it was not alone when it was created, or was recalled
}

// unmade is the version of a parent that the transaction which creates a contender creates,
// too. No such parent is stored.
const unmade int32 = -1

func isUnmade(p parent) bool { return p.version == unmade }

// maxParents bounds the cache to some tens of megabytes.
const maxParents = 1 << 17

const (
	reapIdle = 10 * time.Second // how long a name is idle before its container is removed

	// foreignIdle is how much longer the client knows znodes of others. Then all servers show its
	// last release of the name: one that lags behind by syncLimit, usually 10 s, serves no clients.
	foreignIdle = 50 * time.Second
)

// find returns what is known about a path. fresh means that the caller can rely on it: the path
// was looked up within reapIdle, or is not ours to write, or is occupied. Occupied means that a
// queue node of ours is below it, so that no client can have removed it.
func (p *parents) find(path string, occupied bool) (found parent, fresh, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byPath[path]
	if !ok {
		return parent{}, false, false
	}
	p.recent.MoveToFront(e)
	known, now := e.Value.(*parent), time.Now()
	if fresh = occupied || !known.marked || now.Sub(known.used) < reapIdle; fresh {
		known.used = now
	}
	return *known, fresh, true
}

// add stores what was found out about a parent, and keeps what the cache knows of our own use:
// of several goroutines that use a fresh name at the same time one has created the znode, and the
// others find it.
func (p *parents) add(found parent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found.used = time.Now()
	if e, ok := p.byPath[found.path]; ok {
		before := e.Value.(*parent)
		found.releasedOn, found.warned, found.recalls = before.releasedOn, before.warned, before.recalls
		found.suffix, found.uses = before.suffix, before.uses
		found.version = max(found.version, before.version)
		found.createdHere = found.createdHere || before.createdHere && found.marked
		e.Value = &found
		p.recent.MoveToFront(e)
		return
	}
	if p.byPath == nil {
		p.byPath = make(map[string]*list.Element)
	}
	p.byPath[found.path] = p.recent.PushFront(&found)
	if p.recent.Len() > maxParents {
		oldest := p.recent.Back()
		delete(p.byPath, p.recent.Remove(oldest).(*parent).path)
	}
}

// get returns what is known about a path; nothing but zeros if that is nothing.
func (p *parents) get(path string) (found parent) {
	p.known(path, func(known *parent) { found = *known })
	return found
}

// known calls do with what is known about a path, if anything is.
func (p *parents) known(path string, do func(*parent)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.byPath[path]; ok {
		do(e.Value.(*parent))
	}
}

// takeIdle takes out parents that are idle, of at most n that were not looked up. inUse reports whether
// a name is in use although it was not looked up; such a parent is used now. more says that there may be
// further ones.
func (p *parents) takeIdle(since time.Time, n int, inUse func(path string) bool) (idle []parent, more bool) {
	paths := p.notLookedUp(since, n)
	for _, path := range paths {
		if inUse(path) {
			p.find(path, true)
		} else if found, ok := p.take(path, since); ok {
			idle = append(idle, found)
		}
	}
	return idle, len(paths) == n
}

// notLookedUp returns the paths of at most n parents that this client has not looked up since a time,
// or, for those of other clients, since foreignIdle before that; the oldest first.
func (p *parents) notLookedUp(since time.Time, n int) (paths []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := p.recent.Back(); e != nil && len(paths) < n; e = e.Prev() {
		found := e.Value.(*parent)
		if found.used.After(since) {
			break
		}
		if found.createdHere || !found.used.After(since.Add(-foreignIdle)) {
			paths = append(paths, found.path)
		}
	}
	return paths
}

// take takes a parent out, unless it was looked up since a time.
func (p *parents) take(path string, since time.Time) (found parent, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byPath[path]
	if !ok || e.Value.(*parent).used.After(since) {
		return parent{}, false
	}
	delete(p.byPath, path)
	return *p.recent.Remove(e).(*parent), true
}

// forget takes a path out of the cache.
func (p *parents) forget(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.byPath[path]; ok {
		p.recent.Remove(e)
		delete(p.byPath, path)
	}
}

// leaving records that nodes below some paths are being deleted in the background. The caller
// calls done once, when they are gone or go with their session.
func (p *parents) leaving(paths []string) (done func()) {
	gone := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.released == nil {
		p.released = make(map[string][]chan struct{})
	}
	for _, path := range paths {
		p.released[path] = append(p.released[path], gone)
	}
	return func() {
		close(gone)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, path := range paths {
			p.released[path] = slices.DeleteFunc(p.released[path], func(other chan struct{}) bool { return other == gone })
			if len(p.released[path]) == 0 {
				delete(p.released, path)
			}
		}
	}
}

// left returns a channel for each asynchronous release below a path that is under way, which is
// closed when that is done.
func (p *parents) left(path string) []chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.released[path])
}
