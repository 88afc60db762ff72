package naming

import (
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
)

// errMissing is matched by the errors of Missing and Misconfigured.
var errMissing = errors.New("the request has no value to name the lock")

// lacking is a refusal for a request that lacks the value for its lock's name. IsMissing knows it
// by its type.
type lacking struct{ zklock.Acquirer }

// Missing returns a refusal for a request without the value. Its error matches
// zklock.ErrInvalidName.
func Missing() zklock.Acquirer { return missing }

var missing zklock.Acquirer = lacking{zklock.Refuse(fmt.Errorf("%w: %w", zklock.ErrInvalidName, errMissing))}

// Misconfigured returns a refusal for a request that lacks the value because no
// request of its route can have it; reason says why. Its error matches
// zklock.ErrMisuse. IsMissing reports it too: where a lock is optional and covers
// several routes, the routes without the value run without the lock.
func Misconfigured(reason string) zklock.Acquirer {
	return lacking{zklock.Refuse(fmt.Errorf("%w: %w: %s", zklock.ErrMisuse, errMissing, reason))}
}

// IsMissing reports whether a is from Missing or Misconfigured.
func IsMissing(a zklock.Acquirer) bool {
	_, is := a.(lacking)
	return is
}
