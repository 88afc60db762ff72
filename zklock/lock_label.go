package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// SetLabel replaces the text that others read about the lock's holder, such as its address or
// "row 1200 of 9000". It is cut at 256 bytes. [Client.Contenders] returns it, and a
// [Client.Watch] reports it while the lock is held exclusively.
//
// The label belongs to the lock's place in ZooKeeper's queue. Readers of this process that
// share the place share the label. After a hand-over inside the process, which costs no
// request, others read the last label for a while: see [Contender].
//
// SetLabel costs a read and a write for each of the lock's names, and the next waiter in the
// queue reads the node again. It returns when the ensemble has confirmed the write. If ctx
// ends first, or connect_timeout passes, the error says so: others may read either label
// then, and no late write undoes a later SetLabel. If the lock is not held any more, the
// error matches [ErrLost] or [ErrReleased]. No other error affects the lock.
func (l *Lock) SetLabel(ctx context.Context, label string) (err error) {
	if l == nil || l.handle == nil {
		return &Error{Op: "label", Err: ErrReleased}
	}
	h := l.hold
	p := h.place
	defer annotate(&err, "label", h.name)
	if err := l.Err(); err != nil {
		return err
	}
	h.mu.Lock() // the hold has the label first: see place.Place.Amend
	h.origin.Label = queue.Truncate(label, queue.MaxLabel)
	h.mu.Unlock()
	err = p.Amend(ctx, func(d *queue.Data) { p.Relabel(d) })
	if errors.Is(err, driver.ErrNoNode) && l.Err() == nil {
		p.Lose()
	}
	switch {
	case l.Err() != nil, errors.Is(err, driver.ErrNoNode), errors.Is(err, errs.ErrSessionOver):
		return l.endedError() // also without an error: the label was not written, if the lock had ended by then
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errLabelOpen, whyEnded(ctx, err))
	case errors.Is(err, errs.ErrUnavailable):
		return fmt.Errorf("%w: %w", errLabelOpen, err)
	}
	return p.Explain(err)
}

// errLabelOpen means that the ensemble has not confirmed a label.
var errLabelOpen = errors.New("label not confirmed: other clients may read the old one or the new one")
