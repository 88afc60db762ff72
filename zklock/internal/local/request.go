package local

import (
	"context"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
)

// Caller is the owner of a request. The package calls it on the goroutine that does what it reports,
// and without a mutex, except where a comment says otherwise.
type Caller interface {
	// NewHold returns a new hold, and a handle of it. The owner allocates the two together.
	NewHold() (*Hold, Handle)

	// NewHandle returns a further handle of a hold. It is called under the hold's mutex, and locks
	// nothing.
	NewHandle(h *Hold) Handle

	// Handle returns the newest handle that was made.
	Handle() Handle

	// Sees notes the contender that a try has met. For a goroutine of this process it is called under a
	// local queue's mutex, and locks nothing.
	Sees(ahead Ahead)

	// Waits is called when the request begins to wait for other contenders, and again each time it
	// has looked. refused: it must not wait, because the limit of waiters is reached.
	Waits(ahead Ahead, refused bool)

	// HandedOver is called when the request got the place of an earlier hold without a request to the
	// ensemble. from is the trace of that hold's acquisition.
	HandedOver(from string)
}

// Request is one acquisition, of one name or of several as one lock. Its owner sets the exported
// fields before Queues.Enter.
type Request struct {
	place.Claim

	Caller     Caller
	Name       string        // for hooks and errors: the names joined by commas, if there are several
	Wait       time.Duration // how long to wait at most; 0: no limit
	MaxWaiters int           // it must not wait if that many of this client wait already; 0: no limit
	Alone      bool          // it takes a separate place, which is not handed over
	FailFast   bool          // it fails in an outage that has lasted for connect_timeout
	FailBusy   bool          // it fails if it would have to wait for longer than its bounds allow

	served  bool // guarded by Queues.mu; it has its lock, and must not be counted as waiting
	blocked bool // guarded by Queues.mu; it is counted as waiting for others

	// Used by the requester's goroutine only, or as the comment says. (The flags stand together, since
	// there may be thousands of requests.)
	waits    bool // it has had to wait for other contenders
	admitted bool // it was let through the gate; guarded by the gate's mu for other goroutines
	apart    bool // its place is not handed over; a goroutine that grants the place reads it

	home   home
	cancel context.CancelCauseFunc // guarded by Queues.mu for other goroutines; ends the context; see Queues.contextOf

	ctx      context.Context // see Queues.contextOf
	waitFrom time.Time       // since when it waits for other contenders; guarded by Queues.mu for other goroutines
	got      *Hold           // what it was granted, with the Caller's newest handle; the granting goroutine sets it before it notifies the requester's
}

// home is the local queue that a request has come to, that of its first name. Its hold belongs there,
// too. Queue implements it.
type home interface {
	place.RecallHandler

	// served and vacated begin and end the use of names by a hold.
	served(r *Request, names []place.Want)
	vacated(names []place.Want)

	// mustWait and waitAgain count a request as one that waits for other contenders.
	mustWait(r *Request) bool
	waitAgain(r *Request)

	// leaderMeets is called when the leader has found another contender in ZooKeeper's queue.
	leaderMeets(waits bool, at waitingPlace)

	// admittedMeets is called when a request that was let through the gate waits for a contender.
	admittedMeets(r *Request, at waitingPlace)

	// pass gives the place of a hold that is over to the next goroutine, or keeps it.
	pass(h *Hold) (taken, handed bool)

	// worked notes since when the last caller of a hold, which gives it back now, has had it.
	worked(h *Hold, since time.Time)

	// holdsAtGate notes the newest hold that was made for a request that was let through the gate.
	holdsAtGate(r *Request, h *Hold)

	// leavesGate lets others through the gate: the nodes of a hold that was let through are about to go.
	// passGate gives its place to the next that waits there, if there is one.
	leavesGate(h *Hold)
	passGate(h *Hold) (taken bool)

	// serve lets waiters go on: lost is over or, if lost is nil, a writer's hold has become a reader's.
	serve(lost *Hold)
}

// counts reports whether a want takes room at the gate. Readers hold together.
func counts(w *place.Want) bool { return w.Kind.Permits > 0 || !w.Kind.Mode.Joins() }

// takes reports whether a request takes room on one of its names.
func takes(wants []place.Want) bool {
	return slices.ContainsFunc(wants, func(w place.Want) bool { return counts(&w) })
}

// latest returns until when a request with FailBusy can wait, as far as its bounds say; zero if it has none, or
// may wait in any case.
func (r *Request) latest() (latest time.Time) {
	if !r.FailBusy || r.Try {
		return latest
	}
	latest, _ = r.Ctx.Deadline()
	if over := time.Now().Add(r.Wait); r.Wait > 0 && (latest.IsZero() || over.Before(latest)) {
		latest = over
	}
	return latest
}

// Granted reports whether the request was granted a hold. The hold may have been lost since.
func (r *Request) Granted() bool { return r.got != nil }

// meets reports to the Caller that the request waits for another contender. It ends the request if
// the limit of waiters is reached.
func (r *Request) meets(ahead Ahead) {
	refused := !r.waits && !r.home.mustWait(r)
	r.waits = r.waits || !refused
	r.Caller.Waits(ahead, refused)
	if refused {
		r.cancel(errs.ErrCrowded) // without a mutex: it may call methods of the caller's context
	}
}

// Waited returns for how long a request has waited for other contenders; 0 if it has not had to.
func (r *Request) Waited() time.Duration {
	if !r.waits {
		return 0
	}
	return time.Since(r.waitFrom)
}

// claimant is a request as its place sees it.
type claimant Request

// Waits implements place.Requester.
func (r *claimant) Waits(own *place.Place, dir string, position int, ahead place.Entry) {
	a := Ahead{Position: position, Entry: ahead, Own: own, Path: dir}
	if r.Try { // a try is not a waiter
		r.Caller.Sees(a)
	}
	switch {
	case !r.apart:
		r.home.leaderMeets(!r.Try, waitingPlace{own, a.Nearest()})
	case r.admitted:
		r.home.admittedMeets((*Request)(r), waitingPlace{own, a.Nearest()})
	}
	if !r.Try {
		(*Request)(r).meets(a)
	}
}

// Stays implements place.Requester: the requester's goroutine has the place itself.
func (r *claimant) Stays() bool { return true }

// NewHold implements place.Requester. The hold has one handle, the requester's.
func (r *claimant) NewHold(p *place.Place) place.Holder {
	h, first := r.Caller.NewHold()
	h.home, h.apart, h.admitted, h.place = r.home, r.apart, r.admitted, p
	h.name, h.wants, h.mode, h.origin, h.candidacy = r.Name, r.Wants, r.Mode, r.Origin, r.Candidacy
	h.handles = append(h.firstSlot[:0], first)
	if r.admitted {
		h.home.holdsAtGate((*Request)(r), h)
	}
	return h
}

// Begin implements place.Requester.
func (r *claimant) Begin(h place.Holder, turn uint32) bool {
	return h.(*Hold).begin((*Request)(r), turn)
}
