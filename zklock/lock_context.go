package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/place"
)

// heldKey is the context key of the innermost lock a context carries.
type heldKey struct{}

// held is a linked list, so that a context of a context keeps what it had.
type held struct {
	lock  *Lock
	outer *held
}

func withLock(ctx context.Context, l *Lock) context.Context {
	outer, _ := ctx.Value(heldKey{}).(*held)
	return context.WithValue(ctx, heldKey{}, &held{lock: l, outer: outer})
}

// FromContext returns the innermost lock that ctx carries and that is still
// held. A context gets to carry a lock through Lock.Context, and so through Do
// and all adapters.
func FromContext(ctx context.Context) (*Lock, bool) {
	for h, _ := ctx.Value(heldKey{}).(*held); h != nil; h = h.outer {
		if h.lock.Err() == nil {
			return h.lock, true
		}
	}
	return nil, false
}

// HeldIn returns all locks that ctx carries and that are still held, innermost
// first.
func HeldIn(ctx context.Context) []*Lock {
	var locks []*Lock
	for h, _ := ctx.Value(heldKey{}).(*held); h != nil; h = h.outer {
		if h.lock.Err() == nil {
			locks = append(locks, h.lock)
		}
	}
	return locks
}

// Detach returns a context like ctx that carries no locks. Use it for goroutines
// beside the work that holds them: they must not take part in its locks, and must
// not be refused with ErrDeadlock because of them. It is cancelled when ctx is, and
// so when the lock is given back; who is to go on after that takes
// Detach(context.WithoutCancel(ctx)).
func Detach(ctx context.Context) context.Context {
	return context.WithValue(ctx, heldKey{}, (*held)(nil))
}

// carried returns a Lock that ctx carries, of one of those turnstiles, which has
// one of the names wanted: a live one if there is any, else a lost one, else
// nil. Released handles do not count.
func carried(ctx context.Context, all *turnstiles, wants []place.Want) *Lock {
	var lost *Lock
	for h, _ := ctx.Value(heldKey{}).(*held); h != nil; h = h.outer {
		l := h.lock
		if l.hold.all != all || !l.hold.touches(wants) {
			continue
		}
		switch err := l.Err(); {
		case err == nil:
			return l
		case err != ErrReleased && lost == nil:
			lost = l
		}
	}
	return lost
}
