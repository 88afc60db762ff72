package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// setLabel is Lock.SetLabel. It notes the label in the hold, first: see place.Place.Amend.
func setLabel(ctx context.Context, l *Lock, label string) error {
	h := l.hold
	p := h.place
	if err := l.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	h.origin.Label = label
	h.mu.Unlock()
	err := p.Amend(ctx, func(d *queue.Data) { place.Relabel(p, d) })
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
