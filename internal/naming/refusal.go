package naming

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
)

// ErrMissing is matched by the error of a Refusal for a request that lacks the
// value which names its lock.
var ErrMissing = fmt.Errorf("%w: the value that names it is missing", zklock.ErrInvalidName)

// Refusal is an Acquirer that cannot be acquired: it stands for a lock that has
// no name.
type Refusal struct {
	// Err says why not.
	Err error
}

var _ zklock.Acquirer = Refusal{}

// Missing is a Refusal with ErrMissing.
func Missing() zklock.Acquirer { return missing }

var missing zklock.Acquirer = Refusal{ErrMissing}

// Misconfigured is a Refusal of a request that lacks the value because no
// request of its route can have it, for the reason given. Its error matches
// zklock.ErrMisuse. It is Missing as well: an optional lock around several routes is
// for those that have the value.
func Misconfigured(reason string) zklock.Acquirer {
	return Refusal{fmt.Errorf("%w: %w: %s", ErrMissing, zklock.ErrMisuse, reason)}
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
