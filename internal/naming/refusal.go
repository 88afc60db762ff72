package naming

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
)

// ErrMissing is matched by the error of a Refusal for a request that lacks the value for its
// lock's name.
var ErrMissing = errors.New("the request has no value to name the lock")

// Refusal is an Acquirer whose Acquire always fails. It takes the place of a lock
// that has no name.
type Refusal struct {
	// Mutex is nil. It makes a Refusal an Acquirer, which only types of zklock are.
	*zklock.Mutex

	// Err is the reason.
	Err error
}

var _ zklock.Acquirer = Refusal{}

// Missing returns a Refusal with ErrMissing.
func Missing() zklock.Acquirer { return missing }

var missing zklock.Acquirer = Refusal{Err: fmt.Errorf("%w: %w", zklock.ErrInvalidName, ErrMissing)}

// Misconfigured returns a Refusal for a request that lacks the value because no
// request of its route can have it; reason says why. Its error matches
// zklock.ErrMisuse. It matches ErrMissing too: where a lock is optional and covers
// several routes, the routes without the value run without the lock.
func Misconfigured(reason string) zklock.Acquirer {
	return Refusal{Err: fmt.Errorf("%w: %w: %s", zklock.ErrMisuse, ErrMissing, reason)}
}

// IsMissing reports whether a is a Refusal with ErrMissing.
func IsMissing(a zklock.Acquirer) bool {
	r, ok := a.(Refusal)
	return ok && errors.Is(r.Err, ErrMissing)
}

// Name implements zklock.Acquirer.
func (Refusal) Name() string { return "" }

// Acquire implements zklock.Acquirer.
func (r Refusal) Acquire(context.Context, ...zklock.AcquireOption) (*zklock.Lock, error) {
	return nil, &zklock.Error{Op: "acquire", Err: r.Err}
}

// TryAcquire implements zklock.Acquirer.
func (r Refusal) TryAcquire(ctx context.Context, opts ...zklock.AcquireOption) (*zklock.Lock, error) {
	return r.Acquire(ctx, opts...)
}
