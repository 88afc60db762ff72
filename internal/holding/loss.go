package holding

import (
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Lease is what Loss asks of a lock.
type Lease interface {
	Name() string
	Valid() bool
	Err() error
}

// Loss returns the loss of a lock; nil if it is held, or was released. A process that was stopped
// finds that the lease has run out before the loss is reported: that is a loss too.
func Loss(l Lease) error {
	valid := l.Valid() // before Err, so that a release in between is not taken for a loss
	switch err := l.Err(); {
	case valid, errors.Is(err, zklock.ErrReleased):
		return nil
	case err != nil:
		return err
	}
	return &zklock.LostError{Name: l.Name(), Cause: zklock.ErrLeaseOver, At: time.Now()}
}
