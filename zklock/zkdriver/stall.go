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

// attempt is the use of one server by the dialer, up to the end of the handshakes. If the server
// answers nothing, and another one answers, the attempt ends early: a server that hangs accepts
// connections, and would take all of an attempt's time.
//
// A server that is only slow, because its quorum is, answers a question for its status. So it keeps
// its attempt, and no second session is opened.
type attempt struct {
	ctx    context.Context // ends when the attempt ends; its cause is errStalled if the server hangs
	cancel context.CancelCauseFunc
}

// begin begins an attempt. It ends with the next call of succeeded or failed.
func (d *dialer) begin(ctx context.Context, server string) *attempt {
	a := &attempt{}
	a.ctx, a.cancel = context.WithCancelCause(ctx)
	d.mu.Lock()
	d.attempt = a
	d.mu.Unlock()
	if len(d.turns.all()) > 1 {
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
	asked := time.Now()
	var asking sync.WaitGroup
	defer asking.Wait()
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	servers := d.turns.all()
	own, other := make(chan struct{}, len(servers)), make(chan time.Duration, len(servers)) // how long the answer took
	for _, s := range servers {
		asking.Go(func() {
			// The others may have no quorum yet. Attempts on them end at once, and this server has its next turn soon. In an
			// election they may refuse connections for a while.
			at := asked
			answers, _ := d.ask(ctx, s, d.config.names.name(s))
			for !answers && s != server && sleep(ctx, stallTime) {
				at = time.Now()
				answers, _ = d.ask(ctx, s, d.config.names.name(s))
			}
			switch {
			case s == server && answers:
				own <- struct{}{}
			case answers:
				other <- time.Since(at)
			}
		})
	}
	var took time.Duration
	select {
	case <-own:
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
