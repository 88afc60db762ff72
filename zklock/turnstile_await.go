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
			position, ahead := t.ahead()
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

// leaderWaitsLocked decides whether a reader that enters now counts as waiting. It does
// not yet if the leader is a reader too and is asking the ensemble for a place, and if
// all tickets between the two are of such readers: they will join the leader's hold. Then
// it returns a channel that is closed when the leader has to wait for other contenders,
// and with it the readers behind it. It returns nil if the reader has to wait now.
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
