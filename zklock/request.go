package zklock

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// request is one acquisition: of one name, or of several as one lock.
type request struct {
	place.Request

	all       *turnstiles
	turnstile *turnstile // through which what it gets may be handed over; nil: it may not
	name      string     // as shown: the names joined, if there are several
	failFast  bool
	cancel    context.CancelCauseFunc // ends the wait
	served    bool                    // guarded by all.mu; it has its lock, and is not to be counted as waiting
	blocked   bool                    // guarded by all.mu; it is counted as waiting for others

	maxWaiters int // beside how many of this client it may wait; 0: any number

	// Of the requester's goroutine only, where nothing else is said.
	waiting  bool            // the Wait hook was called
	waitCtx  context.Context // what it returned
	waitFrom time.Time       // guarded by all.mu for others: since when it waits for other holders
	endWait  hook.End[WaitResult]
	ahead    string // the node last told of
	lock     *Lock  // what it was granted; set by whoever granted it, before the request learns of it
}

// Waits implements place.Requester.
func (r *request) Waits(position int, ahead queue.Node, data []byte) {
	if r.turnstile != nil {
		r.turnstile.leaderStuck()
	}
	r.wait(position, contenderOf(ahead, data))
}

// Begin implements place.Requester: the place's turn is a hold from now on, with one handle, the
// requester's.
func (r *request) Begin(p *place.Place, turn uint32) session.Tenant {
	h := &hold{all: r.all, place: p, turnstile: r.turnstile, name: r.name, wants: r.Wants, mode: r.Mode, origin: r.Origin,
		token: Token{Zxid: p.Zxid, Turn: turn}}
	r.lock = h.join(r.Ctx)
	r.all.granted(h, r) // before anything can lose it
	return h
}

// wait tells the hooks whom the request waits for.
func (r *request) wait(position int, ahead Contender) {
	hooks := &r.all.hooks
	e := WaitEvent{Name: r.name, Mode: Mode(r.Mode), Position: position, Ahead: ahead}
	switch {
	case !r.waiting:
		if !r.all.mustWait(r) {
			return // its wait has ended
		}
		r.waiting, r.ahead = true, ahead.Node
		r.waitCtx, r.endWait = hook.Start(hooks.wait, r.Ctx, e)
	case r.ahead != ahead.Node:
		r.ahead = ahead.Node
		if hooks.ahead != nil {
			hooks.ahead(r.waitCtx, e)
		}
	}
}

// waited ends what wait started, if it did.
func (r *request) waited(err error) {
	if r.waiting {
		r.endWait.Call(WaitResult{Err: err})
	}
}

// waitedFor is how long the request waited for others.
func (r *request) waitedFor() time.Duration {
	if !r.waiting {
		return 0
	}
	return time.Since(r.waitFrom)
}

// introduce notes what others are told of the request.
func (r *request) introduce(cfg acquireConfig) {
	r.Origin = place.Origin{Label: cfg.label, Since: time.Now().UnixMilli()}
	if inject := r.all.hooks.inject; inject != nil {
		r.Origin.Trace = inject(r.Ctx)
	}
}
