package served

import (
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// mostEstimated bounds the delay that an estimate causes: it says how often the lock was passed on of late, and that
// may change. A client that comes back too early is refused once more, and one that comes back too late has waited for
// nothing.
const mostEstimated = time.Minute

// RetryAfter returns when the client of a request that was refused with err shall repeat it, without jitter: after
// least, or after the estimate of a zklock.BusyError if that is longer.
func RetryAfter(least time.Duration, err error) time.Duration {
	if busy := new(zklock.BusyError); errors.As(err, &busy) {
		return max(least, min(busy.Wait, mostEstimated))
	}
	return least
}
