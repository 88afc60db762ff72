package place

import (
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// tenure is the hand-over of a place: which hold has it, and how often it was passed on.
type tenure struct {
	Granted time.Time      // set once, under Desk.mu; when it was first granted; zero if it was not
	hold    session.Tenant // guarded by Desk.mu; the hold that has it now; nil if none has
	share   *time.Timer    // guarded by Desk.mu; see ShareAt

	handovers uint32 // guarded by Desk.mu; how often it was handed over since its grant or its recall
	turn      uint32 // guarded by Desk.mu; the turn of the next hold
	shown     uint32 // guarded by Desk.mu; equal to turn if the nodes' data describe the newest hold

	doubtfulTxn atomic.Bool            // a Txn under it may still be applied
	revocation  atomic.Pointer[string] // set under Desk.mu; why the holder is asked to give the lock back; nil: it is not
}

// Grant grants a place whose turn it is: the requester begins a hold of it. It checks
// in the same step that the session is alive, that its lease is long enough, and that
// the place's state allows a hold. Otherwise it returns false. The session's mutex is held
// for the whole step, and the end of the session needs it, so the session cannot end between the
// check and the hold. Under it, the step locks the desk's mutex, and Begin locks hold.mu and
// turnstiles.mu, one after the other. The caller may hold turnstile.mu.
func (p *Place) Grant(by Requester) bool {
	desk := p.Desk
	return desk.Hold(desk.Least(), func() session.Tenant {
		desk.mu.Lock()
		defer desk.mu.Unlock()
		if p.passedOnRevoked() || !p.life.moveLocked(held) {
			return nil
		}
		if p.Granted.IsZero() {
			p.Granted = time.Now()
			p.watches.addLocked(p)
		} else {
			p.handovers++
		}
		p.hold = by.Begin(p, p.turn)
		p.turn++
		return p.hold
	})
}

// MayJoin reports whether another reader may join the readers that hold a place: the lease
// is long enough, the place is not revoked, and the time within has not passed since the
// limits of hand-over count.
func (p *Place) MayJoin(within time.Duration) bool {
	return p.Desk.Leased() && p.Standing().MayJoin(within)
}

// EndHold takes a hold that is over off the place and its session. It does nothing to the
// place if another hold has it.
func (p *Place) EndHold(h session.Tenant) {
	p.Desk.Drop(h)
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	if p.hold == h {
		p.hold = nil
		p.life.moveLocked(spent)
	}
}

// Holder returns the hold that has the place; nil if none has it.
func (p *Place) Holder() session.Tenant {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	return p.hold
}

// Deleted reports whether another client has deleted a node of the place.
func (p *Place) Deleted() bool { return p.life.state() == deleted }

// Lose ends a place when another client has deleted a node of it. The hold of the place is
// lost, and the place's other nodes leave the queue. The session lives on. Only the first
// call has an effect: several goroutines may notice the deletion.
func (p *Place) Lose() {
	desk := p.Desk
	desk.mu.Lock()
	lost := p.life.moveLocked(deleted)
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
		desk.Evict(h, errs.ErrNodeDeleted)
		p.removeAfterLoss()
	}
}

// Requester is the owner of a request, which the place notifies.
type Requester interface {
	// Waits is called, without a mutex, each time the place begins to wait for another contender, with the nearest
	// one, and when a try would have to. position is how many contenders are ahead. Without Data,
	// only the name of the contender's node is known.
	Waits(position int, ahead Entry)

	// Begin turns a place whose turn it is into a hold, and returns the hold. turn goes
	// into the hold's token. The mutexes of the session and of the desk are held, and that of the
	// turnstile may be.
	Begin(p *Place, turn uint32) session.Tenant
}

// Standing returns what the client knows of a place at the moment.
func (p *Place) Standing() Standing {
	p.Desk.mu.Lock()
	defer p.Desk.mu.Unlock()
	return p.standingLocked()
}

func (p *Place) standingLocked() Standing {
	s := Standing{
		Mode:      p.nodes[0].kind.Mode,
		Doubtful:  p.doubtfulTxn.Load(),
		Revoked:   p.isRevoked(),
		Keepable:  p.keepable,
		WasKept:   p.wasKept,
		Others:    p.others,
		Turn:      p.turn,
		Handovers: int(p.handovers),
	}
	if !s.IsOpen() { // else no limit counts, and the clock need not be read
		s.Limited = time.Since(p.Granted) - p.recalled
	}
	return s
}
