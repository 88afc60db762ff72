package place

import (
	"container/list"
	"sync"
	"time"
)

// parents remembers lock znodes that are known to exist, so that a name in use
// costs one round trip. It is a cache: a parent may be gone at any time (an idle
// container is removed by the server), and then a create says so.
type parents struct {
	made func() // called when this client has created one; set before any is added

	mu     sync.Mutex
	byPath map[string]*list.Element // guarded by mu; of *parent
	recent list.List                // guarded by mu; most recently used first
}

// parent is what is known about a lock's znode.
type parent struct {
	path string
	ours bool // its data is our mark: writing it again changes nothing

	mine bool // this client has created it, as a container

	// version is that of the data when this client last wrote it.
	version int32

	// released is the id of the session on which this client gave the name up
	// last; 0 if it has not.
	released int64

	used time.Time // when it was last looked for, and known to be there

	foreign bool // it was told that there are children which are no contenders
}

// maxParents bounds the cache to some tens of megabytes.
const maxParents = 1 << 17

// find returns what is known about a path. fresh says that it can be relied on: it
// was looked for within reapIdle, or is occupied, which means that a queue node of
// ours is below it, so that nobody can have removed it.
func (p *parents) find(path string, occupied bool) (found parent, fresh, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byPath[path]
	if !ok {
		return parent{}, false, false
	}
	p.recent.MoveToFront(e)
	known, now := e.Value.(*parent), time.Now()
	if fresh = occupied || now.Sub(known.used) < reapIdle; fresh {
		known.used = now
	}
	return *known, fresh, true
}

func (p *parents) add(found parent) {
	if found.mine && p.made != nil {
		defer p.made() // without mu
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found.used = time.Now()
	if e, ok := p.byPath[found.path]; ok {
		found.released, found.foreign = e.Value.(*parent).released, e.Value.(*parent).foreign
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

// noteVersion remembers the version that this client's own write has given a
// znode's data.
func (p *parents) noteVersion(path string, version int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.byPath[path]; ok {
		known := e.Value.(*parent)
		known.version = max(known.version, version)
	}
}

// releasedOn is the id of the session on which this client gave a name up last; 0
// if it has not.
func (p *parents) releasedOn(path string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.byPath[path]; ok {
		return e.Value.(*parent).released
	}
	return 0
}

// noteRelease remembers on which session a name was given up.
func (p *parents) noteRelease(path string, session int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.byPath[path]; ok {
		e.Value.(*parent).released = session
	}
}

// firstForeign reports, once for a path that is known, that it has foreign
// children: so that it is told once and not at every list.
func (p *parents) firstForeign(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.byPath[path]
	if !ok || e.Value.(*parent).foreign {
		return false
	}
	e.Value.(*parent).foreign = true
	return true
}

// takeIdle takes out what this client has created and has not looked for since a
// time, the oldest first and at most n of them. inUse tells of names that are in
// use without being looked for; they count as used now. more says that there is
// something left to come back for.
func (p *parents) takeIdle(since time.Time, n int, inUse func(path string) bool) (idle []parent, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var before *list.Element
	for e := p.recent.Back(); e != nil; e = before {
		before = e.Prev()
		found := e.Value.(*parent)
		switch {
		case !found.mine:
			continue
		case len(idle) == n || found.used.After(since):
			return idle, true
		case inUse(found.path):
			found.used = time.Now()
			p.recent.MoveToFront(e)
			more = true
			continue
		}
		idle = append(idle, *found)
		p.recent.Remove(e)
		delete(p.byPath, found.path)
	}
	return idle, more
}

func (p *parents) forget(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.byPath[path]; ok {
		p.recent.Remove(e)
		delete(p.byPath, path)
	}
}
