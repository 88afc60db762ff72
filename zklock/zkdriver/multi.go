package zkdriver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// multiHeaderLen is the length of the header in front of each operation of a
// transaction, and of the one at its end.
const multiHeaderLen = 4 + 1 + 4

// errUnreadable is the reason why the outcome of a transaction is unknown.
var errUnreadable = errors.New("results do not match the transaction")

// Multi implements driver.Session. A single operation that has a request of its own is
// sent as that request.
func (s *session) Multi(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	if len(ops) == 1 && ops[0].Kind != driver.OpCheck {
		return s.single(ctx, &ops[0])
	}
	var zxid int64
	c := call{op: "multi", size: requestHeaderLen + multiHeaderLen, zxid: &zxid}
	requests := make([]any, len(ops))
	for i, op := range ops {
		size, request, err := convertOp(op)
		if err != nil {
			return nil, wrap(c, fmt.Errorf("op %d, %v %q: %w", i, op.Kind, op.Path, err))
		}
		c.size += multiHeaderLen + size
		requests[i] = request
	}
	// The client's results come together with its error, and both are interpreted
	// here: a failed operation is not a failed request.
	type answer struct {
		responses []zk.MultiResponse
		err       error
	}
	a, err := run(ctx, s, c, func(conn *zk.Conn) (answer, error) {
		responses, err := conn.Multi(requests...)
		if len(responses) == len(ops) && len(ops) > 0 {
			return answer{responses, err}, nil
		}
		if err == nil && len(ops) > 0 || errors.Is(err, zk.ErrAPIError) {
			// At a result that it does not know, the client stops with ErrAPIError,
			// and the transaction may have been applied.
			err = errUnreadable
		}
		return answer{}, err
	})
	if err != nil {
		return nil, err
	}
	if a.err != nil {
		results, err := failedMulti(c, ops, a.responses, a.err)
		return s.localSession(ctx, c, ops, results, err)
	}
	results := make([]driver.OpResult, len(ops))
	for i, r := range a.responses {
		results[i].Path, results[i].Zxid = r.String, zxid
		if r.Stat != nil {
			results[i].Stat = convertStat(r.Stat)
		}
	}
	return results, nil
}

// localSession replaces ErrSessionExpired by ErrLocalSession in a transaction's outcome. The
// leader does not know a local session of another server, and answers a create of an ephemeral
// znode as if the session had expired. Only the session's own server gives the true reason, to
// a plain create. So localSession sends one, with a path that has no parent, which changes
// nothing.
func (s *session) localSession(ctx context.Context, c call, ops []driver.Op, results []driver.OpResult, err error) ([]driver.OpResult, error) {
	i := slices.IndexFunc(results, func(r driver.OpResult) bool { return errors.Is(r.Err, driver.ErrSessionExpired) })
	if i < 0 || ops[i].Kind != driver.OpCreate || !ops[i].Mode.Ephemeral() {
		return results, err
	}
	path := fmt.Sprintf("%s~%016x/~", ops[i].Path, rand.Uint64())
	if _, reason := s.Create(ctx, path, nil, driver.Ephemeral, ops[i].ACL); !errors.Is(reason, driver.ErrLocalSession) {
		return results, err
	}
	results[i].Err = driver.ErrLocalSession
	return results, wrap(c, failedOp(ops, results, i))
}

// single executes one operation as a plain request. It returns a result for every definite
// answer of a server, and none if the request was not sent or its outcome is unknown.
func (s *session) single(ctx context.Context, op *driver.Op) ([]driver.OpResult, error) {
	results := make([]driver.OpResult, 1)
	r := &results[0]
	var err error
	switch op.Kind {
	case driver.OpCreate:
		r.Path, err = s.create(ctx, op.Path, op.Data, op.Mode, op.ACL, &r.Zxid)
	case driver.OpDelete:
		err = s.delete(ctx, op.Path, op.Version, &r.Zxid)
	case driver.OpSet:
		r.Stat, err = s.set(ctx, op.Path, op.Data, op.Version, &r.Zxid)
	default:
		err = wrap(call{op: "multi"}, fmt.Errorf("%w: unknown kind of operation", driver.ErrBadArguments))
	}
	if err == nil {
		return results, nil
	}
	if !definite(err) {
		return nil, err
	}
	*r = driver.OpResult{Err: err}
	return results, err
}

// definite reports whether an error refuses the operation itself, by the server or before it
// was sent, so that it is the operation's result.
func definite(err error) bool {
	for _, open := range []error{driver.ErrNotSent, driver.ErrConnLoss, driver.ErrSessionExpired, driver.ErrClosed, driver.ErrThrottled} {
		if errors.Is(err, open) {
			return false
		}
	}
	return true
}

// failedMulti distinguishes the operation that failed from those that were rolled
// back with it. Servers report the latter as successful if they precede it, and as a
// runtime inconsistency if they follow it.
func failedMulti(c call, ops []driver.Op, responses []zk.MultiResponse, err error) ([]driver.OpResult, error) {
	results := make([]driver.OpResult, len(ops))
	fault := -1
	for i, r := range responses {
		if fault < 0 && r.Error != nil && !rolledBack(r.Error) {
			fault = i
			reason, _ := translate(r.Error)
			if ops[i].Mode == driver.Container && errors.Is(reason, driver.ErrBadArguments) {
				// A server without containers does not know the mode. There is no other
				// reason: convertOp has checked the path.
				reason = both(driver.ErrUnimplemented, r.Error)
			}
			results[i].Err = reason
			continue
		}
		results[i].Err = driver.ErrRolledBack
		if r.Error != nil {
			results[i].Err = both(driver.ErrRolledBack, r.Error)
		}
	}
	if fault < 0 {
		return nil, wrap(c, both(driver.ErrConnLoss, errUnreadable, err))
	}
	return results, wrap(c, failedOp(ops, results, fault))
}

// failedOp returns the error of a transaction whose operation at index i is at fault.
func failedOp(ops []driver.Op, results []driver.OpResult, i int) error {
	return fmt.Errorf("op %d, %v %q: %w", i, ops[i].Kind, ops[i].Path, results[i].Err)
}

// rolledBack reports whether an operation failed only because of another.
func rolledBack(err error) bool {
	code, ok := errorCode(err)
	return ok && code == codeRuntimeInconsistency
}

// convertOp checks an operation, translates it, and returns its size.
func convertOp(op driver.Op) (size int, request any, err error) {
	if err := checkPath(op.Path, op.Kind == driver.OpCreate && op.Mode.Sequential()); err != nil {
		return 0, nil, err
	}
	size = pathSize(op.Path) + 4
	switch op.Kind {
	case driver.OpCreate:
		flags, err := createFlags(op.Mode)
		if err != nil {
			return 0, nil, err
		}
		return createSize(op.Path, op.Data, op.ACL),
			&zk.CreateRequest{Path: op.Path, Data: content(op.Data), Acl: convertACL(op.ACL), Flags: flags}, nil
	case driver.OpDelete:
		return size, &zk.DeleteRequest{Path: op.Path, Version: op.Version}, nil
	case driver.OpSet:
		return size + 4 + len(op.Data),
			&zk.SetDataRequest{Path: op.Path, Data: content(op.Data), Version: op.Version}, nil
	case driver.OpCheck:
		return size, &zk.CheckVersionRequest{Path: op.Path, Version: op.Version}, nil
	}
	return 0, nil, fmt.Errorf("%w: unknown kind of operation", driver.ErrBadArguments)
}
