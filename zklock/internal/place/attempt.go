package place

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Claim is what a request asks of a place, and all that the place knows of the request.
type Claim struct {
	Ctx   context.Context // for hooks: what the Acquire hook returned
	Wants []Want
	Mode  queue.Mode
	Try   bool // it fails instead of waiting for other contenders
	Keep  bool // its place may be kept in the queue after its last use

	// Candidacy says that its wait and its hold are meant to be long. Its place is not handed over, so
	// the data of its nodes say so for as long as they exist.
	Candidacy bool

	Origin Origin

	// NoSessionSince is since when there has been no usable session; zero if there is
	// one. Only the requester's goroutine uses it.
	NoSessionSince time.Time

	// comesAgain says that it leaves the queue only to come again as one for a permit that looks: see Attempt.await. Then
	// max_contenders does not count it as a newcomer.
	comesAgain bool
}

// data returns the data for the queue nodes of a claim. They do not describe it if the place may be
// kept: see describe.
func (r *Claim) data(cfg *NodeSettings, keep bool) queue.Data {
	d := queue.Data{Host: cfg.Host, PID: cfg.PID, Mode: r.Mode.String(), Keep: keep, Candidacy: r.Candidacy}
	if !keep {
		d.Label, d.Since, d.Trace, d.Revocable = r.Origin.Label, r.Origin.since(), r.Origin.Trace, r.Origin.Revocable
	}
	return d
}

// Attempt is a request's attempt to acquire its names on one session.
//
// Invariants:
//   - An attempt has at most one place at a time: the one that it was given, until a new one has
//     replaced that, and then the new one. A new place whose creation fails never becomes the
//     attempt's: see creation.
//   - A step that fails returns its error, and the attempt still has its place. Take alone decides
//     what becomes of it: see settle. The one exception sets place to nil: see replaceOrCreate.
//   - So when Take returns, each place that the attempt has had is granted, or returned, or is being
//     removed, or goes with a session that is over. If a hook panics, which is always before the grant, the
//     place is being removed, too: the caller may recover, and would leave it in the queue.
type Attempt struct {
	Session *WatchedDesk // that the attempt is made on
	Claim   *Claim       // of the request
	By      Requester    // whose request it is

	place   *Place             // the place that it has; nil: it has none
	given   *Place             // the place that it was given to begin with; nil: none
	patient context.Context    // bounds what it does before it has a place in the queue
	cancel  context.CancelFunc // of patient
	since   time.Time          // what NoSessionSince was when it got its place
	wait    wait               // for its turn

	// recalls is set for a try that finds only places ahead that their clients may keep. It
	// waits for them to be recalled, but no longer than recallWait.
	recalls bool
}

// desk returns the desk of the session that the attempt is made on.
func (a *Attempt) desk() *Desk { return a.Session.Desk }

// wait is the state of an attempt's wait for its turn: on one name after the other, and then for the grant.
type wait struct {
	ctx   context.Context
	stop  context.CancelFunc // of ctx, which bounds a try; else nil
	ended error              // why ctx had ended when the wait ended; nil: it had not, or there was no wait

	name     int    // which of the place's names it waits for
	line     line   // what it knows of the queue of that name; zero before the first look at it
	woken    bool   // it has waited for the first name since it began with that
	watchOwn bool   // our own nodes are watched during the wait for that name
	conn     uint64 // the connection that showed the place's turn on the names before; 0 if there was more than one
	looks    []look // of each name, begun together after a wait for the first one; nil: none
}

// look is a list of the queue of one of the place's names.
type look struct {
	sight Sight
	q     []queue.Node // ends with our own node
	self  int
	err   error
}
