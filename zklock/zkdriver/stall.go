package zkdriver

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// stallAfter is how long a server may take for the handshakes before the servers are asked.
	stallAfter = 150 * time.Millisecond

	// stallTime is the least time that it has, if another server answers and it does not. After the
	// other one's answer it has at least as long again as that took: if that was long, this machine or
	// the network is slow.
	stallTime = 250 * time.Millisecond
)

// errStalled is the reason why a server was left for another one.
var errStalled = errors.New("it accepts no connection or answers nothing, and another server answers")

// errPassedOn is the reason why an attempt on a balancer was given up for the next one.
var errPassedOn = errors.New("it answers for its status, and not on this connection")

// attempt is the use of one server by the dialer, up to the end of the handshakes. If the server
// answers nothing, and another one answers, the attempt ends early: a server that hangs accepts
// connections, and would take all of an attempt's time.
//
// A server that is only slow, because its quorum is, answers a question for its status. So it keeps
// its attempt, and no second session is opened. To resume a session needs no commit: a server that answers for its
// status, and does not resume the session, is not the one that has the attempt. A balancer has passed that on to one that hangs.
type attempt struct {
	ctx    context.Context // ends when the attempt ends; its cause is errStalled if the server hangs
	cancel context.CancelCauseFunc
}

// left returns why the attempt was given up before its time; nil if it was not.
func (a *attempt) left() error {
	if why := context.Cause(a.ctx); why == errStalled || why == errPassedOn {
		return why
	}
	return nil
}

// begin begins an attempt. It ends with the next call of succeeded or failed.
func (d *dialer) begin(ctx context.Context, server string) *attempt {
	a := &attempt{}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	d.mu.Lock()
	d.attempt = a
	d.mu.Unlock()
	if !d.opens() || len(d.turns.all()) > 1 {
		d.watching.Go(func() { d.watch(a, server) })
	}
	return a
}

// endLocked ends the attempt that is under way, if there is one.
func (d *dialer) endLocked() {
	if d.attempt != nil {
		d.attempt.cancel(nil)
		d.attempt = nil
	}
}

// watch ends an attempt on a server that hangs.
func (d *dialer) watch(a *attempt, server string) {
	begun := time.NewTimer(stallAfter)
	defer begun.Stop()
	select {
	case <-begun.C:
	case <-a.ctx.Done():
		return
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	servers, resumes := d.turns.all(), !d.opens()
	own, other := make(chan time.Duration, 1), make(chan time.Duration, 1) // how long the first answer took
	ask := func(s string, to chan<- time.Duration) (answers bool) {
		at := time.Now()
		if answers, _ = d.ask(ctx, s, d.config.names.name(s)); answers {
			select {
			case to <- time.Since(at):
			default:
			}
		}
		return answers
	}
	for _, s := range servers {
		if s != server {
			// The others may have no quorum yet. Attempts on them end at once, and this server has its next turn soon. In an
			// election they may refuse connections for a while.
			asking.Go(func() {
				for !ask(s, other) && sleep(ctx, stallTime) {
				}
			})
		}
	}
	asking.Go(func() {
		asking.Go(func() { ask(server, own) })
		for pause := minPatience; resumes && sleep(ctx, pause); pause *= 2 { // a balancer may have passed the question on to the same one
			asking.Go(func() { ask(server, own) })
		}
	})
	var took time.Duration
	select {
	case took = <-own:
		cancel()
		if resumes && sleep(a.ctx, max(2*took, patience(d.session.Timeout()))) {
			a.cancel(errPassedOn)
		}
		return // it is slow, and does not hang
	case <-a.ctx.Done():
		return
	case took = <-other:
	}
	late := time.NewTimer(max(took, stallTime-stallAfter-took))
	defer late.Stop()
	select {
	case <-own:
	case <-a.ctx.Done():
	case <-late.C:
		a.cancel(errStalled)
	}
}
