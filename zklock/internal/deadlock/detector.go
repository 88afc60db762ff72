package deadlock

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/mutex"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Waiter is a nested acquisition that waits. An acquisition of several names is nested, too: while it waits for one
// name, its nodes on the others are in the way of other waiters.
type Waiter interface {
	// Wanted returns the request that waits.
	Wanted() *local.Request

	// Holds returns what the context of the acquisition holds now, of locks below the client's root.
	Holds() []Carried

	// Deadlock ends the wait, because of a circle of waits of which it is the first.
	Deadlock(circle []Link)
}

// Carried is a lock that a nested wait's context carries.
type Carried struct {
	Nodes  []local.NamedNode
	Handle local.Handle // nil for a lock of a caller in another process
	By     *Detector    // of the handle's client
}

// listing is the registration of a wait, as the detector has it.
type listing struct {
	*registration
	waiter Waiter
	holds  []Carried    // the locks that the waiter's context carries
	own    *place.Place // with which the wait stood in the queue of ZooKeeper; another one has other points
	before *listing     // of the same wait, until this one takes its place; nil: there was none
	past   *history     // of the wait
	by     *Detector    // that has registered it
}

// Detector finds deadlocks for one client. One goroutine registers the client's nested waits, looks at the
// register and ends waits. It begins with the first nested wait, and ends with the client.
//
// Invariants:
//   - The detector registers a wait that lasts, and has the removal of the registration confirmed before the wait's
//     caller goes on: see End. So while a registration exists, its wait lasts.
//   - The detector has the removal confirmed, too, before the client passes on a lock that the registration lists: see
//     Released. So while the registration and the lock's node exist, the wait's context holds the lock.
//   - A wait has at most one registration. When the wait changes what it waits for or holds, the detector registers
//     the wait again, behind all others, but not at once and not each time: see history. Until then the
//     registration may have a point that the wait stands behind no longer. The second look finds such a point. The
//     next round removes a registration that is wrong in a way that no look finds: see misleads.
//   - The detector ends a wait in one transaction. Before that it has read a circle of which the wait was registered
//     last. The transaction removes the wait's registration, and checks that the others' registrations and the queue
//     nodes are unchanged, by their versions. So the circle stood at the transaction. Of a circle one wait ends: of
//     two transactions the later fails, since a registration is gone. A transaction that fails changes nothing, so two
//     members do not remove their registrations in turns, however long a request takes. The detector reads after the
//     transaction what does not fit into it: see register.stood. Then a wait may stay although its registration was
//     removed. But of several waits whose circles have each other, not all stay: the first that was registered is in
//     a circle that has none of the others.
//   - The detector sends no such transaction if the wait has ended, or if a holder is releasing a lock that is listed:
//     see removal. Nor does the detector end a wait while the register has an earlier registration of the wait, since
//     another member may have seen that. All registrations of a wait have its number in their names.
//
// If the outcome of a registration is not known, the registration counts as made, until a list after a Sync has shown
// the opposite, or this client has deleted it: see deleteOnce. A registration that the servers do not let this client
// delete counts until its session ends. Meanwhile this client makes no others: see delete.
//
// Exceptions to the first three: The caller of a wait for several names whose context holds nothing goes on
// at once. If the ensemble does not confirm a removal soon, the caller goes on, the lock is not passed on
// inside its process, and a wait that has changed is registered again while its old registration may stay. And the
// registrations of a session that this client has given up stay until the ensemble ends the session.
type Detector struct {
	register
	local   *local.Queues
	timeout time.Duration
	client  uint64 // identifies it in registrations
	wake    chan struct{}

	Unknown atomic.Uint64 // waits of which a bound has hidden whether they are in a circle, each counted once

	mu     mutex.Mutex[mutex.Inner]
	begun  bool                        // guarded by mu
	waits  map[Waiter]waiterRecord     // guarded by mu
	listed map[local.Handle][]*listing // guarded by mu; those that list a lock of this client
	lists  atomic.Int32                // how many entries listed has; changed under mu

	// Used by the detector's goroutine only.
	serial     uint32
	lookAt     time.Time // when the register is looked at next, if no wait is registered before that
	doubtUntil time.Time // until then the register may have registrations of this client that no wait has
	doubtNext  time.Time // when it is read next for that
	lastRound  time.Time // when the last one has ended
}

// waiterRecord is what a detector keeps of a waiter. It has at most 128 bytes: a map allocates larger elements one by
// one.
type waiterRecord struct {
	since   time.Time
	own     *place.Place // see local.Queues.Behind
	nearest place.NodeID // as own
	reg     *listing     // nil: it has none
	past    *history     // nil before the first round after deadlock_timeout
	unknown bool         // it was counted in Detector.Unknown
}

// Times of a detector.
const (
	lookAgain  = 10 * time.Second      // how often the register is looked at while waits last
	patience   = time.Second           // how long a release waits for the removal of a registration, and how long a wait that changes does
	promptly   = 10 * time.Millisecond // how long a wait that has ended does
	leastTick  = 10 * time.Millisecond // the least time between two rounds
	lateCreate = 10 * time.Second      // with two session timeouts: when no create is applied late any more; see package place
)

// New returns the detector of a client. Nested waits that last for timeout are registered; 0: none is.
func New(cfg *place.NodeSettings, pool *session.Pool[*place.WatchedDesk], queues *local.Queues, timeout time.Duration) *Detector {
	return &Detector{
		register: register{cfg: cfg, pool: pool, path: cfg.Root + "/" + queue.WaitsName},
		local:    queues, timeout: timeout, client: rand.Uint64(),
		wake:   make(chan struct{}, 1),
		waits:  make(map[Waiter]waiterRecord),
		listed: make(map[local.Handle][]*listing),
	}
}

// Waits notes that a nested acquisition waits, and where: see local.Queues.Behind.
func (d *Detector) Waits(w Waiter, own *place.Place, nearest place.NodeID) {
	if d.timeout == 0 {
		return
	}
	d.mu.Lock()
	n, known := d.waits[w]
	if !known {
		n.since = time.Now()
	}
	n.own, n.nearest = own, nearest
	d.waits[w] = n
	begins, first := !d.begun, len(d.waits) == 1 && !known
	d.begun = true
	d.mu.Unlock()
	switch {
	case begins:
		d.pool.Spawn(d.run)
	case first:
		d.rouse()
	}
}

// rouse makes the detector's goroutine look for what is due.
func (d *Detector) rouse() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// End notes that an acquisition waits no longer. Its registration, if it has one, is removed before End
// returns, unless the ensemble takes too long to confirm that. If its context holds nothing, End does not
// wait for that: the nodes that others wait for are those of the wait itself, which go at the same time.
func (d *Detector) End(w Waiter) {
	if d.timeout == 0 {
		return
	}
	d.mu.Lock()
	n, known := d.waits[w]
	delete(d.waits, w)
	d.mu.Unlock()
	switch {
	case !known || n.reg == nil:
	case len(n.reg.holds) == 0:
		d.remove(n.reg.registration)
	default:
		withdraw([]*listing{n.reg}, time.After(promptly))
	}
}

// Released is called when a handle of this client's was released, before its hold goes on or its place is
// passed on. It removes the registrations that list the lock. It returns false if the ensemble has not
// confirmed that before ctx has ended, or within patience: then the place must not be passed on. With async
// it does not wait.
func (d *Detector) Released(ctx context.Context, h local.Handle, async bool) bool {
	if d.lists.Load() == 0 {
		return true
	}
	d.mu.Lock()
	regs := slices.Clone(d.listed[h])
	d.mu.Unlock()
	if len(regs) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if async {
		cancel()
	}
	return withdraw(regs, ctx.Done())
}

// withdraw removes some registrations, and reports whether that was confirmed before limit, a channel, is
// ready. Until it is confirmed, they count as listing their locks: see Released.
func withdraw[T any](regs []*listing, limit <-chan T) (confirmed bool) {
	for _, r := range regs {
		r.by.remove(r.registration)
	}
	confirmed = true
	for _, r := range regs {
		if confirmed {
			select {
			case <-r.gone:
			case <-limit:
			}
		}
		confirmed = confirmed && r.isGone()
	}
	return confirmed
}

// note notes which locks a registration lists, or no longer lists.
func (d *Detector) note(r *listing, begin bool) {
	for _, h := range r.holds {
		if by := h.By; by != nil {
			by.mu.Lock()
			regs := slices.DeleteFunc(by.listed[h.Handle], func(o *listing) bool { return o == r })
			if begin {
				regs = append(regs, r)
			}
			if by.listed[h.Handle] = regs; len(regs) == 0 {
				delete(by.listed, h.Handle)
			}
			by.lists.Store(int32(len(by.listed)))
			by.mu.Unlock()
		}
	}
}
