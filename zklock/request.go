package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// request is one acquisition, of one name or of several as one lock.
type request struct {
	place.Request

	turnstiles *turnstiles
	turnstile  *turnstile              // the turnstile that hands its place over; nil: its place is not handed over
	name       string                  // for callers and hooks: the names joined by commas, if there are several
	cancel     context.CancelCauseFunc // guarded by turnstiles.mu for other goroutines; ends the context; see context

	// Set by options.
	wait       time.Duration // how long to wait at most; 0: no limit
	maxWaiters int           // it must not wait if that many of this client wait already; 0: no limit
	rejoins    bool          // Reenter
	alone      bool          // WithoutHandover
	async      bool          // WithAsyncRelease
	revocable  bool
	failFast   bool

	served  bool // guarded by turnstiles.mu; it has its lock, and must not be counted as waiting
	blocked bool // guarded by turnstiles.mu; it is counted as waiting for others

	// Used by the requester's goroutine only, or as the comment says.
	ctx      context.Context // see context
	waitCtx  context.Context // what the Wait hook returned; nil until the request waits for other contenders
	waitFrom time.Time       // since when it waits for other contenders; guarded by turnstiles.mu for other goroutines
	endWait  hook.End[WaitResult]
	ahead    obstacle
	lock     *Lock // the lock that was granted; the granting goroutine sets it before it notifies the requester's
}

// Waits implements place.Requester.
func (r *request) Waits(position int, ahead place.Entry) {
	c := contenderOf(ahead)
	if c.Kept { // its description, if it has one, may be of a holder that has gone; the present one's is on its way
		c.Label, c.Trace, c.Since = "", "", time.Time{}
	}
	if r.Try { // a try is not a waiter
		if id := ahead.GUID.Session; ahead.Data == nil && ahead.Ours() {
			c.Foreign, c.Host = false, "session "+session.HexID(id)
			if slices.ContainsFunc(r.turnstiles.pool.All(), func(s *place.Session) bool { return s.ID() == id }) {
				c.Host = "this client"
			}
		}
		r.sees(position, &c)
	}
	if r.turnstile != nil {
		r.turnstile.leaderMeets(!r.Try)
	}
	if !r.Try {
		r.reportWait(position, c)
	}
}

// NewHold implements place.Requester. The hold has one handle, the requester's.
func (r *request) NewHold(p *place.Place) place.Holder {
	h := &hold{turnstiles: r.turnstiles, place: p, turnstile: r.turnstile, name: r.name, wants: r.Wants, mode: r.Mode, origin: r.Origin, candidacy: r.Candidacy,
		token: Token{Zxid: p.Zxid}, grants: r}
	h.join(r)
	return h
}

// context returns the context of an acquisition that does not get its lock at once. It is made at the
// first call: an acquisition from a goroutine of this process, or of a kept place, needs none. It
// ends with the caller's, when the longest time to wait has passed, when the limit of waiters is
// reached, or when the client is closed.
func (r *request) context() context.Context {
	if r.ctx != nil {
		return r.ctx
	}
	ctx, cancel := context.WithCancelCause(r.Ctx)
	end := cancel
	if r.wait > 0 && !r.Try {
		timer := time.AfterFunc(r.wait, func() { cancel(errs.ErrWaitOver) })
		end = func(cause error) { timer.Stop(); cancel(cause) }
	}
	ts := r.turnstiles
	ts.mu.Lock()
	r.ctx, r.cancel = ctx, end
	refused := ts.closing.Err() != nil
	ts.mu.Unlock()
	if refused {
		end(errs.ErrClosed)
	}
	return ctx
}

// reportWait calls the Wait hook when the request begins to wait for another contender,
// and the Ahead hook when that contender changes, or the acquisition that it stands for.
func (r *request) reportWait(position int, ahead Contender) {
	hooks := &r.turnstiles.hooks
	e := WaitEvent{Name: r.name, Mode: Mode(r.Mode), Candidacy: r.Candidacy, Position: position, Ahead: ahead}
	changed := r.ahead.node != ahead.Node || r.ahead.trace != ahead.Trace || r.ahead.since <= 0 && !ahead.Since.IsZero()
	r.sees(position, &ahead)
	switch {
	case !r.waiting():
		if !r.turnstiles.mustWait(r) {
			r.cancel(errs.ErrCrowded) // without a mutex: it may call methods of the caller's context
			return
		}
		r.waitCtx, r.endWait = hook.Start(hooks.Wait, r.Ctx, e)
	case changed && hooks.Ahead != nil:
		hooks.Ahead(r.waitCtx, e)
	}
}

// waiting reports whether the request has had to wait for other contenders.
func (r *request) waiting() bool { return r.waitCtx != nil }

// endWaiting ends and counts the wait for other contenders, if there was one, and returns how long
// it took.
func (r *request) endWaiting(err error) (waited time.Duration) {
	if r.waiting() {
		r.endWait.Call(WaitResult{Err: err})
		waited = time.Since(r.waitFrom)
		if !r.Candidacy { // it waits on purpose
			r.turnstiles.counters.contended.Add(1)
			r.turnstiles.counters.waited.Add(int64(waited))
		}
	}
	return waited
}

// sees records the contender ahead, for explain.
func (r *request) sees(position int, ahead *Contender) {
	r.ahead = obstacle{node: ahead.Node, host: ahead.Host, label: ahead.Label, trace: ahead.Trace, since: ahead.Since.UnixMilli(), pid: int32(ahead.PID), position: int32(position), foreign: ahead.Foreign, granted: ahead.Held}
}

// explain adds to the error of a wait, or of a try, what the request knows of the contenders
// ahead. It makes no request for that, so the holder may have changed since the request last
// looked.
func (r *request) explain(err error) error {
	if r.ahead.position == 0 || r.lock != nil || !errors.Is(err, ErrNotAcquired) {
		return err
	}
	o, n := r.ahead, int(r.ahead.position)
	waits := o.node == "" || n > 1 && (len(r.Wants) > 1 || n != r.Wants[0].Kind.Permits)
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

// name returns how an error names the contender. Its texts were written by another client, so
// they are escaped.
func (o *obstacle) name() string {
	name := "another client"
	quoted := strconv.Quote(o.host)
	switch host := quoted[1 : len(quoted)-1]; {
	case o.foreign:
		name = "a contender of another library"
	case host != "" && o.pid != 0:
		name = fmt.Sprintf("%s/%d", host, o.pid)
	case host != "":
		name = host
	case o.pid != 0:
		name = fmt.Sprintf("process %d", o.pid)
	}
	if o.label != "" {
		name += " " + strconv.Quote(o.label)
	}
	return name
}
