package place

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// placeState is the state of a place. moveLocked changes it, and only in the ways of this
// table:
//
//	from     to       when
//	opening  queued   its nodes exist, with or without other contenders in the queue
//	opening  leaving  its creation failed or was given up, or the created place was refused
//	queued   held     its turn has come
//	queued   leaving  no goroutine waits with it, or a writer would be next in a reader's
//	held     spent    the hold was released
//	held     deleted  another client has deleted a node
//	spent    held     it is handed over to the next goroutine of this process, or the client keeps it for one
//	spent    reserved it could be handed over, but the lease is not long enough at the moment
//	spent    leaving  it is released, or replaced by a new place at the tail
//	spent    deleted  another client has deleted a node
//	reserved resumed  the next goroutine has taken it up, and waits for the lease
//	reserved leaving  no goroutine takes it up, or the next one does not use this session
//	reserved deleted  another client has deleted a node
//	resumed  held     the lease is long enough again
//	resumed  leaving  that goroutine gave up: it is not taken up twice, but replaced
//	resumed  deleted  another client has deleted a node
//
// Invariants:
//   - A place has a hold, which its session counts, if and only if it is held. If no goroutine
//     wants it, the client itself may have that hold: see Keep. Then no caller has a Lock of it.
//   - No move leads out of leaving and deleted. The end of the session moves a place that the client
//     keeps to spent, and no other.
//   - Moves are made under the desk's mu.
//   - A move that the table does not have is refused, and has no effect. So a caller may
//     report the loss of a place that is leaving.
//   - This client deletes no node of a place before giveUp, so no delete ends the exclusion of a hold.
type placeState int32

const (
	opening  placeState = iota // its creates are under way, or their outcome is open
	queued                     // it waits for its turn
	held                       // a hold has it
	spent                      // its hold is over, and no other hold has it
	reserved                   // the next goroutine of this process may take it up as it is
	resumed                    // that goroutine has taken it up, and waits for the lease
	leaving                    // this client deletes its nodes, or they go with the session
	deleted                    // another client has deleted a node; the other nodes are removed
)

// next has the states that may follow each state.
var next = [...][]placeState{
	opening:  {queued, leaving},
	queued:   {held, leaving},
	held:     {spent, deleted},
	spent:    {held, reserved, leaving, deleted},
	reserved: {resumed, leaving, deleted},
	resumed:  {held, leaving, deleted},
	leaving:  nil,
	deleted:  nil,
}

// progress holds the state of a place.
type progress struct{ current atomic.Int32 }

// state returns the state. If the desk's mu is not held, that may change at once.
func (l *progress) state() placeState { return placeState(l.current.Load()) }

// ending reports whether the place is leaving or deleted.
func (l *progress) ending() bool { return l.state() >= leaving }

// moveLocked changes the state and returns true. If the table does not have the move, it
// leaves the state as it is and returns false. The desk's mu is held.
func (l *progress) moveLocked(to placeState) bool {
	if !slices.Contains(next[l.state()], to) {
		return false
	}
	l.current.Store(int32(to))
	return true
}

var errHeld = errors.New("another hold has the place") // so its nodes stay

// giveUp moves the place to leaving: it will not be held again, and its nodes need not be watched. If a hold has the
// place, the table of states refuses that: then there is a bug, giveUp logs it, and returns errHeld.
func (p *Place) giveUp() error {
	p.Desk.mu.Lock()
	ending := p.giveUpLocked()
	p.Desk.mu.Unlock()
	if ending {
		return nil
	}
	p.Desk.cfg.Log().Error("zklock: the queue node of a lock was to be deleted while the lock was held, so it was left alone: please report this as a bug", "node", p.Node())
	return errHeld
}

// giveUpLocked reports whether the place ends now, or did before. The desk's mu is held.
func (p *Place) giveUpLocked() bool {
	if !p.progress.moveLocked(leaving) && !p.progress.ending() {
		return false
	}
	if p.share != nil {
		p.share.Stop()
	}
	return true
}

// handoverState is the hand-over of a place: which hold has it, and how often it was passed on.
type handoverState struct {
	Granted time.Time         // set once, under Desk.mu; when it was first granted; zero if it was not
	hold    session.Dependent // guarded by Desk.mu; the hold that has it now; nil if none has
	share   *time.Timer       // guarded by Desk.mu; see ShareAt

	handovers uint32 // guarded by Desk.mu; how often it was handed over since its grant or its recall
	turn      uint32 // guarded by Desk.mu; the turn of the next hold
	dataTurn  uint32 // guarded by Desk.mu; the turn of the hold that the nodes' data describe, plus 1; 0: the data describe no hold

	doubtfulTxn atomic.Bool            // a Txn under it may still be applied
	revocation  atomic.Pointer[string] // set under Desk.mu; why the holder is asked to give the lock back; nil: it is not
}

// Grant grants a place whose turn it is: a hold of the requester begins. Grant returns false if the
// session is over, if its lease is too short, if the place's state allows no hold, or if nothing wants one.
//
// Grant takes four steps, and holds no mutex from one to the next:
//
//  1. The requester makes a hold, which is not live.
//  2. The session adds it, if the session is alive and its lease is long enough. From then on the
//     hold is lost with the session.
//  3. The place takes it as its hold, if its state allows one. From then on the hold is also lost
//     with the place's node.
//  4. The hold becomes live, unless it was lost since step 2.
//
// So there is no moment at which a hold is live and a loss would miss it.
func (p *Place) Grant(by Requester) bool {
	h := by.NewHold(p)
	if h == nil || !p.Desk.Session.Hold(h, p.Desk.Session.Least()) {
		return false
	}
	if turn, ok := p.take(h); ok && by.Begin(h, turn) {
		return true
	}
	p.EndHold(h)
	return false
}

// take makes h the hold of the place, and returns its turn. It returns false if the place's state
// allows no hold.
func (p *Place) take(h Holder) (turn uint32, ok bool) {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	if p.passedOnRevoked() || !p.progress.moveLocked(held) {
		return 0, false
	}
	if p.Granted.IsZero() {
		p.Granted = time.Now()
		p.watches.addLocked(p)
	} else {
		p.handovers++
	}
	p.hold, turn = h, p.turn
	p.turn++
	return turn, true
}

// EndHold takes a hold that is over off the place and its session. It does nothing to the
// place if another hold has it.
func (p *Place) EndHold(h session.Dependent) {
	p.Desk.Session.Drop(h)
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	if p.hold == h {
		p.hold = nil
		p.progress.moveLocked(spent)
	}
}

// Holder returns the hold that has the place; nil if none has it.
func (p *Place) Holder() session.Dependent {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	return p.hold
}

// Deleted reports whether another client has deleted a node of the place.
func (p *Place) Deleted() bool { return p.progress.state() == deleted }

// Lose ends a place when another client has deleted a node of it. The hold of the place is
// lost, and the place's other nodes leave the queue. The session lives on. Only the first
// call has an effect: several goroutines may notice the deletion.
func (p *Place) Lose() {
	desk := p.Desk
	desk.mu.Lock()
	lost := p.progress.moveLocked(deleted)
	h := p.hold
	if lost {
		p.hold = nil
	}
	desk.mu.Unlock()
	switch {
	case !lost:
	case h == nil:
		p.Remove()
	default:
		desk.Session.Evict(h, errs.ErrNodeDeleted)
		p.removeAfterLoss()
	}
}

// Requester is the owner of a request, which the place notifies.
type Requester interface {
	// Waits is called, without a mutex, each time the place begins to wait for another contender, with the nearest
	// one, and when a try would have to. position is how many contenders are ahead. Without Data,
	// only the name of the contender's node is known. own is the place that waits, nil for a try that has
	// none; dir is the znode of the name on which it waits.
	Waits(own *Place, dir string, position int, ahead Entry)

	// Stays reports whether the place is still wanted. If not, a create that has failed is not repeated.
	Stays() bool

	// NewHold returns a hold of a place whose turn it is. The hold is not live: see Place.Grant. It returns
	// nil if nothing waits for the place any more; the attempt's context has ended then.
	NewHold(p *Place) Holder

	// Begin makes that hold live. turn goes into its token. It returns false if the hold was lost.
	Begin(h Holder, turn uint32) bool
}

// Holder is the hold of a place while callers have Locks of it.
type Holder interface {
	session.Dependent

	// Origin returns what others read of the holder.
	Origin() Origin

	// RecallHandler returns what is notified if the place is recalled.
	RecallHandler() RecallHandler
}
