package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/local"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// acquisition is one acquisition, with its options. It calls the hooks for what happens to its request.
type acquisition struct {
	request local.Request
	client  *clientCore

	// Set by options.
	rejoins  bool                          // Reenter
	async    bool                          // WithAsyncRelease
	maxHold  time.Duration                 // WithMaxHold; 0: no limit
	deadlock atomic.Pointer[DeadlockError] // set by the detector's goroutine, which ends the wait with it
	nested   bool                          // it waits, and its context carries locks; used as the fields below are

	// Used by the requester's goroutine only, or as the comment says.
	waitCtx context.Context // what the Wait hook returned; nil until the request waits for other contenders
	endWait hook.End[WaitResult]
	ahead   obstacle
	lock    *Lock // the newest that was made for it; the caller's if the request is granted; the granting goroutine sets it
}

var _ local.Caller = (*acquisition)(nil)

// stay is a hold with its first handle, which live equally long.
type stay struct {
	hold  local.Hold
	first lockHandle
}

// NewHold implements local.Caller.
func (a *acquisition) NewHold() (*local.Hold, local.Handle) {
	s := new(stay)
	a.lock = s.first.init(a.client, a.request.Ctx, &s.hold)
	return &s.hold, &s.first
}

// NewHandle implements local.Caller.
func (a *acquisition) NewHandle(h *local.Hold) local.Handle {
	hd := new(lockHandle)
	a.lock = hd.init(a.client, a.request.Ctx, h)
	return hd
}

// Handle implements local.Caller.
func (a *acquisition) Handle() local.Handle { return a.lock.handle }

// Sees implements local.Caller.
func (a *acquisition) Sees(ahead local.Ahead) {
	c := a.contender(&ahead)
	if id := ahead.Entry.GUID.Session; !ahead.Local && ahead.Entry.Data == nil && ahead.Entry.Ours() {
		c.Foreign, c.Host = false, "session "+session.HexID(id)
		if slices.ContainsFunc(a.client.pool.All(), func(s *place.WatchedDesk) bool { return s.Session.ID() == id }) {
			c.Host = "this client"
		}
	}
	a.sees(ahead.Position, &c)
}

// Waits implements local.Caller. It calls the Wait hook when the request begins to wait for another
// contender, and the Ahead hook when that contender changes, or the acquisition that it stands for.
func (a *acquisition) Waits(ahead local.Ahead, refused bool) {
	c, hooks := a.contender(&ahead), &a.client.hooks
	e := WaitEvent{Name: a.request.Name, Mode: Mode(a.request.Mode), Candidacy: a.request.Candidacy, Position: ahead.Position, Ahead: c}
	changed := a.ahead.node != c.Node || a.ahead.trace != c.Trace || a.ahead.since <= 0 && !c.Since.IsZero()
	a.sees(ahead.Position, &c)
	if !refused {
		a.nest(&ahead)
	}
	switch {
	case refused:
	case a.waitCtx == nil:
		a.waitCtx, a.endWait = hook.Start(hooks.Wait, a.request.Ctx, e)
	case changed && hooks.Ahead != nil:
		hooks.Ahead(a.waitCtx, e)
	}
}

// contender returns what others see of the contender that a request waits for.
func (a *acquisition) contender(ahead *local.Ahead) Contender {
	if ahead.Local {
		o := &ahead.Origin
		return Contender{Host: a.client.cfg.Place.Host, PID: a.client.cfg.Place.PID, Node: ahead.Entry.Name, Mode: Mode(ahead.Entry.Kind.Mode),
			Trace: o.Trace, Label: o.Label, Held: ahead.Held, Since: ahead.Granted, Candidacy: ahead.Candidacy}
	}
	c := contenderOf(ahead.Entry)
	if c.Kept { // its description, if it has one, may be of a holder that has gone; the present one's is on its way
		c.Label, c.Trace, c.Since = "", "", time.Time{}
	}
	return c
}

// HandedOver implements local.Caller: it counts a hand-over and calls the hook.
func (a *acquisition) HandedOver(from string) {
	a.client.counters.handovers.Add(1)
	if hook := a.client.hooks.Handover; hook != nil {
		l := a.lock
		hook(a.request.Ctx, HandoverEvent{Name: l.handle.hold.Name(), Mode: l.Mode(), Turn: l.handle.token.Turn, From: from, To: l.handle.hold.Origin().Trace})
	}
}

// abandon gives back what an acquisition has when a hook panics: its caller may recover, and gets no Lock. The
// panic goes on. What the request has in the queues, the packages below take out.
func (a *acquisition) abandon() {
	if a.nested {
		a.client.deadlocks.End(a)
	}
	if l := a.lock; l != nil && a.request.Granted() {
		l.handle.hold.Drop(l.handle)
	}
}

// endWaiting ends and counts the wait for other contenders, if there was one, and returns how long
// it took.
func (a *acquisition) endWaiting(err error) (waited time.Duration) {
	if a.nested {
		a.client.deadlocks.End(a)
	}
	if a.waitCtx != nil {
		a.endWait.Call(WaitResult{Err: err})
		waited = a.request.Waited()
		if !a.request.Candidacy { // it waits on purpose
			a.client.counters.contended.Add(1)
			a.client.counters.waited.Add(int64(waited))
		}
	}
	return waited
}

// observed calls the observers. Without any it costs one load.
func (a *acquisition) observed(ctx context.Context) {
	if list := a.client.observers.Load(); list != nil {
		for _, o := range *list {
			(*o)(ctx, a.request.Wants, a.request.Try)
		}
	}
}

// sees records the contender ahead, for explain.
func (a *acquisition) sees(position int, ahead *Contender) {
	a.ahead = obstacle{node: ahead.Node, host: ahead.Host, label: ahead.Label, trace: ahead.Trace, since: ahead.Since.UnixMilli(), pid: int32(ahead.PID), position: int32(position), foreign: ahead.Foreign, granted: ahead.Held}
}

// explain adds to the error of a wait, or of a try, what the request knows of the contenders
// ahead. It makes no request for that, so the holder may have changed since the request last
// looked.
func (a *acquisition) explain(err error) error {
	if a.ahead.position == 0 || a.request.Granted() || !errors.Is(err, ErrNotAcquired) || a.deadlock.Load() != nil {
		return err
	}
	o, n := a.ahead, int(a.ahead.position)
	waits := o.node == "" || n > 1 && (len(a.request.Wants) > 1 || n != a.request.Wants[0].Kind.Permits)
	return &explained{err, o, waits, time.Now().UnixMilli()}
}

// explained is the error of a wait or a try, with the contender that was ahead. Its text is made
// when it is asked for: until then, a try of a lock that is held is cheap.
type explained struct {
	error
	obstacle
	waits bool  // the contender waits itself
	at    int64 // when the wait or the try failed, as since
}

// Error implements error.
func (e *explained) Error() string {
	held := (time.Duration(e.at-e.since) * time.Millisecond).Truncate(time.Second)
	switch {
	case e.waits:
		return fmt.Sprintf("%v; behind %s, %d ahead", e.error, e.name(), e.position)
	case e.since > 0 && held > 0 && e.granted:
		return fmt.Sprintf("%v; held by %s for %v", e.error, e.name(), held)
	case e.since > 0 && held > 0:
		return fmt.Sprintf("%v; held by %s, which asked for it %v ago", e.error, e.name(), held)
	}
	return fmt.Sprintf("%v; held by %s", e.error, e.name())
}

// Unwrap returns the error without the explanation.
func (e *explained) Unwrap() error { return e.error }

// obstacle is what a request remembers of the contender that it waits for. It is small,
// because there may be thousands of requests.
type obstacle struct {
	node        string // "": it is a goroutine of this process that waits itself
	host, label string // host is another word for the client if its host is not known
	trace       string
	since       int64 // in milliseconds since the Unix epoch; not positive: not known
	pid         int32
	position    int32 // how many contenders are ahead
	foreign     bool
	granted     bool // since is when it got the lock, and not when it asked
}

// name returns how an error names the contender.
func (o *obstacle) name() string {
	if o.foreign {
		return labelled("a contender of another library", o.label)
	}
	return processName(o.host, int(o.pid), o.label)
}
