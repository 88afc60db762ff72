package zklock

import (
	"context"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// await waits for a ticket's turn, or until ctx ends, and takes it out of the
// queue then.
func (t *turnstile) await(ctx context.Context, tk *ticket) (turn, error) {
	select {
	case got := <-tk.turn:
		return got, nil
	default:
	}
	for along := tk.along; ; along = nil {
		if along == nil {
			position, ahead := t.ahead()
			tk.r.wait(position, ahead)
		}
		select {
		case got := <-tk.turn:
			return got, nil
		case <-along:
		case <-ctx.Done():
			t.leave(tk)
			return turn{}, errs.WaitEnded(ctx, errs.ErrNotAcquired)
		}
	}
}

// alongLocked says whether a reader that comes now waits for nobody yet: the
// leader, a reader too, asks the ensemble for a place, and all who are between the
// two go along with it. It returns what is closed when the leader has to wait for
// somebody, and they with it; nil: who comes now has to wait.
func (t *turnstile) alongLocked(r *request) <-chan struct{} {
	if r.Mode != queue.Shared || t.leader == nil || t.leader.r.Mode != queue.Shared || t.leader.stuck || !t.sharedLocked() {
		return nil
	}
	if last := t.queue.Back(); last != nil && (t.asking == nil || last.Value.(*ticket).along != t.asking) {
		return nil
	}
	if t.asking == nil {
		t.asking = make(chan struct{})
	}
	return t.asking
}

// leaderStuck tells those who go along with the leader that it has to wait.
func (t *turnstile) leaderStuck() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leader.stuck = true
	if t.asking != nil {
		close(t.asking)
		t.asking = nil
	}
}
