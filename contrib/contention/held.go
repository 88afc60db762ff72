package contention

import (
	"reflect"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// holding is one Lock that is held.
type holding struct {
	calls stack
	since time.Time
	at    uintptr  // the address of the Lock
	next  *holding // another one with the same key
}

// key is what a Lock and its copies in events have in common. Locks that share a queue node have
// the same one, and so may locks of clients of different ensembles.
type key struct {
	name  string
	token zklock.Token
}

func keyOf(l *zklock.Lock) key { return key{l.Name(), l.Token()} }

// address returns where a Lock is. It distinguishes Locks with the same key. The holdings do not
// refer to Locks, or the client would never find that the program has dropped one.
func address(l *zklock.Lock) uintptr { return reflect.ValueOf(l).Pointer() }

// held has the locks that are held now.
type held struct {
	mu    sync.Mutex
	byKey map[key]*holding // guarded by mu
	free  sync.Pool        // of *holding
}

// add adds a lock that the calling goroutine has just acquired. The lock may have been lost
// already, and its loss reported.
func (h *held) add(l *zklock.Lock) {
	one, _ := h.free.Get().(*holding)
	if one == nil {
		one = new(holding)
	}
	one.calls.capture()
	one.since, one.at = time.Now(), address(l)
	k := keyOf(l)
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.Err() != nil {
		h.free.Put(one)
		return
	}
	if h.byKey == nil {
		h.byKey = make(map[key]*holding)
	}
	one.next = h.byKey[k]
	h.byKey[k] = one
}

// remove removes a lock when it is released or lost. The Lock of a loss is a copy if the program has
// dropped the one that it had: lost means that another one of the same key may be removed, since
// all of them are lost.
func (h *held) remove(l *zklock.Lock, lost bool) {
	k, at := keyOf(l), address(l)
	h.mu.Lock()
	defer h.mu.Unlock()
	var previous *holding
	one := h.byKey[k]
	for one != nil && one.at != at && (one.next != nil || !lost) {
		previous, one = one, one.next
	}
	switch {
	case one == nil:
		return
	case previous != nil:
		previous.next = one.next
	case one.next != nil:
		h.byKey[k] = one.next
	default:
		delete(h.byKey, k)
	}
	one.next = nil
	h.free.Put(one)
}

// place is a call site with the class of the locks that it holds.
type place struct {
	calls stack
	class string
}

// age is the value of a place.
type age struct {
	count    int64
	sum, max time.Duration
}

// snapshot adds up the locks that are held now.
func (h *held) snapshot(class func(name string) string, l *lines) map[place]age {
	type one struct {
		holding
		name string
	}
	h.mu.Lock()
	all := make([]one, 0, len(h.byKey))
	for k, next := range h.byKey {
		for ; next != nil; next = next.next {
			all = append(all, one{*next, k.name})
		}
	}
	h.mu.Unlock()
	ages := make(map[place]age)
	for i := range all {
		p := place{l.trim(&all[i].calls), clean(class(all[i].name))}
		a, d := ages[p], time.Since(all[i].since)
		ages[p] = age{a.count + 1, a.sum + d, max(a.max, d)}
	}
	return ages
}
