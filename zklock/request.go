package zklock

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// request is one acquisition: of one name, or of several as one lock.
type request struct {
	all       *turnstiles
	turnstile *turnstile      // through which what it gets may be handed over; nil: it may not
	ctx       context.Context // for hooks: what the Acquire hook returned
	name      string          // as shown: the names joined, if there are several
	mode      queue.Mode
	wants     []want
	try       bool
	failFast  bool
	origin    origin
	cancel    context.CancelCauseFunc // ends the wait
	served    bool                    // guarded by all.mu; it has its lock, and is not to be counted as waiting
	blocked   bool                    // guarded by all.mu; it is counted as waiting for others

	maxWaiters int // beside how many of this client it may wait; 0: any number

	// Of the requester's goroutine only, unlike the above, which never change
	// once the request is queued.
	waiting  bool            // the Wait hook was called
	waitCtx  context.Context // what it returned
	since    time.Time       // since when there has been no usable session; zero if there is one
	waitFrom time.Time       // guarded by all.mu for others: since when it waits for other holders
	endWait  hook.End[WaitResult]
	ahead    string // the node last told of
}

// wait tells the hooks whom the request waits for.
func (r *request) wait(position int, ahead Contender) {
	hooks := &r.all.cfg.hooks
	e := WaitEvent{Name: r.name, Mode: Mode(r.mode), Position: position, Ahead: ahead}
	switch {
	case !r.waiting:
		if !r.all.mustWait(r) {
			return // its wait has ended
		}
		r.waiting, r.ahead = true, ahead.Node
		r.waitCtx, r.endWait = hook.Start(hooks.Wait, r.ctx, e)
	case r.ahead != ahead.Node:
		r.ahead = ahead.Node
		if hooks.Ahead != nil {
			hooks.Ahead(r.waitCtx, e)
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

// describe notes what others are told of the request.
func (r *request) describe(cfg acquireConfig) {
	c := &r.all.cfg
	r.origin = origin{label: cfg.label, since: time.Now().UnixMilli()}
	if c.hooks.Inject != nil {
		r.origin.trace = c.hooks.Inject(r.ctx)
	}
}

// nodeData is what the queue nodes of the request hold.
func (r *request) nodeData() queue.Data { return r.all.nodeData(r.origin, r.mode) }

// origin is what others are told of the request that a place was taken for.
type origin struct {
	label, trace string
	since        int64 // milliseconds since the Unix epoch
}

func (c *common) nodeData(o origin, mode queue.Mode) queue.Data {
	who := &c.cfg.identity
	return queue.Data{Host: who.Host, PID: who.PID, Label: o.label, Mode: mode.String(), Since: o.since, Trace: o.trace}
}
