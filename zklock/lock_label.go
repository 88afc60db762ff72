package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
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
	err := p.Amend(ctx, p.Relabel)
	switch {
	case err == nil && l.Err() != nil:
		return l.endedError() // the place may have had no holder, or the next one, by then
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrNoNode) && l.Err() == nil:
		p.Lose()
		return l.endedError()
	case errors.Is(err, driver.ErrNoNode), errors.Is(err, errs.ErrSessionOver):
		return l.endedError()
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errLabelOpen, whyEnded(ctx, err))
	case errors.Is(err, errs.ErrUnavailable):
		return fmt.Errorf("%w: %w", errLabelOpen, err)
	}
	return p.Explain(err)
}

// errLabelOpen means that the ensemble has not confirmed a label.
var errLabelOpen = errors.New("label not confirmed: other clients may read the old one or the new one")
