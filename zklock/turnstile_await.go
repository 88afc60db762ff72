package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// await waits for a ticket's answer. If ctx ends first, it takes the ticket out of the
// queue.
func (t *turnstile) await(ctx context.Context, tk *ticket) (answer, error) {
	select {
	case got := <-tk.answer:
		return got, nil
	default:
	}
	for leaderWaits := tk.leaderWaits; ; leaderWaits = nil {
		if leaderWaits == nil {
			t.mu.Lock()
			position, ahead := t.aheadLocked()
			t.mu.Unlock()
			tk.r.reportWait(position, ahead)
		}
		select {
		case got := <-tk.answer:
			return got, nil
		case <-leaderWaits:
		case <-ctx.Done():
			t.leave(tk)
			return answer{}, errs.WaitEnded(ctx, errs.ErrNotAcquired)
		}
	}
}

// leaderWaitsLocked decides whether a reader that enters the queue counts as waiting
// already. It does not if the leader is a reader that is asking the ensemble for a place,
// and all tickets between the two are readers' too: they will join the leader's hold. In
// this case leaderWaitsLocked returns a channel, which is closed if the leader has to wait
// for other contenders; then the readers behind it wait too. Otherwise it returns nil.
func (t *turnstile) leaderWaitsLocked(r *request) <-chan struct{} {
	if r.Mode != queue.Shared || t.leader == nil || t.leader.r.Mode != queue.Shared || t.leader.waits || !t.sharedLocked() {
		return nil
	}
	if last := t.queue.Back(); last != nil && (t.leaderWaits == nil || last.Value.(*ticket).leaderWaits != t.leaderWaits) {
		return nil
	}
	if t.leaderWaits == nil {
		t.leaderWaits = make(chan struct{})
	}
	return t.leaderWaits
}

// leaderMustWait is called when the leader has to wait for other contenders. It notifies
// the readers that ask together with the leader: see leaderWaitsLocked.
func (t *turnstile) leaderMustWait() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leader.waits = true
	if t.leaderWaits != nil {
		close(t.leaderWaits)
		t.leaderWaits = nil
	}
}
