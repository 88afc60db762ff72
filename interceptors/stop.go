package interceptors

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/internal/holding"
	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock"
)

// newFailures returns what makes the errors of calls that run under a lock. lostCode is the code of a lost lock.
func newFailures(lostCode codes.Code) *holding.Errors {
	return &holding.Errors{
		Package: "interceptors",
		Lost:    func(cause error) error { return lost(lostCode, cause) },
		TooLong: func(cause error) error {
			return &statusError{status.New(codes.DeadlineExceeded, "the call took longer than its lock may be held (WithMaxHold)"), oneline.Join(zklock.ErrMaxHold, cause)}
		},
		Ended:    func(err, cause error) error { return &statusError{status.FromContextError(err), cause} },
		Own:      func(err, both error) error { return &statusError{statusOf(err), both} },
		Canceled: func(err error) bool { return status.Code(err) == codes.Canceled },
		Late:     func(err error) bool { return status.Code(err) == codes.DeadlineExceeded },
	}
}
