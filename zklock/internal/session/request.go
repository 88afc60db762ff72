package session

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// requests sends a session's requests, each with a deadline, the Operation hook and what its answer
// proves of the session.
type requests struct {
	*life
	deadline deadline
	sizes    proof
	lone     chan struct{} // cap MaxLone: one element for each operation of Once or Repeat, or write that is sent apart, that is under way

	// unchecked is set in a session that follows a loss until a write was committed: it shows whether the
	// ensemble has lost transactions. See order.
	unchecked atomic.Bool
}

// Call sends the requests of one turn of an operation to the ensemble.
type Call func(ctx context.Context, ds driver.Session) error

// Repeat runs an operation until its outcome is definite, and returns the operation's error.
// It is the retry loop of all requests but creates of queue nodes: the operation must be one
// that can be executed twice without harm.
//
// It gives up when the session is over, with errs.ErrSessionOver; when ctx ends, with the
// error of WaitEnded; and after connect_timeout, with errs.ErrUnavailable. While the session answers, the
// time that it waits behind other operations does not count.
// Operations that clean up run with the session's own context as ctx, and go on until they
// succeed or the session is over.
func (s *requests) Repeat(ctx context.Context, kind string, op Call) error {
	began, left := lease.Now(), s.settings.ConnectTimeout
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, s.timeout/10) {
		if err := s.enter(ctx, began); err != nil {
			return err
		}
		turn, limit := time.Now(), s.requestTimeout()
		if ctx != s.ctx {
			limit = min(limit, left)
		}
		err := s.once(ctx, limit, kind, op)
		if err == nil {
			return nil
		}
		if !Transient(err) {
			if s.Ended(err) {
				return errs.ErrSessionOver
			}
			return err
		}
		rest := s.settings.Jitter(pause)
		if ctx != s.ctx {
			rest = min(rest, left-time.Since(turn))
		}
		Sleep(ctx, rest, s.ctx.Done())
		left -= time.Since(turn)
		switch {
		case s.ctx.Err() != nil:
			return errs.ErrSessionOver
		case ctx.Err() != nil:
			return s.WaitEnded(ctx, began)
		case left <= 0 && ctx != s.ctx:
			// err is included as text only: a request's deadline must not be taken for
			// the caller's deadline.
			if why := s.common.connector.Diagnose(); why != nil {
				err = why
			}
			return fmt.Errorf("%w for %v: %v", errs.ErrUnavailable, s.settings.ConnectTimeout, err)
		}
	}
}

// Read is Repeat for the read of a node.
func (s *requests) Read(ctx context.Context, kind, path string) (n driver.Node, err error) {
	err = s.Repeat(ctx, kind, func(ctx context.Context, ds driver.Session) (err error) {
		n, err = ds.Get(ctx, path)
		return err
	})
	return n, err
}

// MaxLone is how many requests of a session may be under way at once, not counting group
// commits and heartbeats. A heartbeat must never wait behind a long queue of requests, such as
// those for ten thousand new names: the lease would run out. This number is more than enough to
// keep a server busy.
const MaxLone = 64

// Once runs an operation one time, with a request's deadline and the Operation hook. Before
// that it waits until fewer than MaxLone operations are under way.
func (s *requests) Once(ctx context.Context, kind string, op Call) error {
	select {
	case s.lone <- struct{}{}:
		return s.once(ctx, s.requestTimeout(), kind, op)
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", driver.ErrNotSent, context.Cause(ctx))
	}
}

// enter waits until fewer than MaxLone operations are under way, and begins one. It gives up when ctx or the
// session ends, and connect_timeout after the session has last answered, or after the call. So
// thousands that ask for something at once, or have to after a cut, do not fail as in an outage. The operation began at the instant began.
func (s *requests) enter(ctx context.Context, began time.Time) error {
	select {
	case s.lone <- struct{}{}:
		return nil
	default:
	}
	patient, stop := ctx, context.CancelFunc(func() {})
	if ctx != s.ctx {
		patient, stop = s.Patient(ctx, began, time.Now().Add(s.settings.ConnectTimeout))
	}
	defer stop()
	select {
	case s.lone <- struct{}{}:
		return nil
	case <-patient.Done():
	case <-s.ctx.Done():
	}
	if ctx.Err() == nil && s.ctx.Err() == nil {
		return s.common.Outage(patient)
	}
	return s.WaitEnded(ctx, began)
}

// once runs an operation one time, with a limit and the Operation hook, and ends what enter began.
func (s *requests) once(ctx context.Context, limit time.Duration, kind string, op Call) error {
	defer func() { <-s.lone }()
	ctx, end := hook.Start(s.settings.Operation, ctx, Operation{Kind: kind, Group: 1, Server: s.ds.Server(), Session: s.ds.ID()})
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := op(ctx, s.ds)
	end.Call(err)
	s.noteReply(err)
	return err
}

// noteReply notes that a request was answered, unless err says that it was not. An error of the operation is
// an answer, too: see heardSince.
func (s *requests) noteReply(err error) {
	if Transient(err) {
		return
	}
	s.mu.Lock()
	s.replied = lease.Now()
	s.mu.Unlock()
}

// requestTimeout returns how long a request may stay unanswered before its outcome is
// unknown. It is two thirds of the time that leases are computed from; ZooKeeper's clients
// allow a silent server two thirds of the session timeout.
func (s *requests) requestTimeout() time.Duration {
	return s.lease.Timeout * 2 / 3
}

// multi runs one transaction of the committer.
func (s *requests) multi(ctx context.Context, kind string, group int, ops []driver.Op) ([]driver.OpResult, error) {
	_, end := hook.Start(s.settings.Operation, ctx, Operation{Kind: kind, Group: group, Server: s.ds.Server(), Session: s.ds.ID()})
	results, err := s.transact(s.deadline.context(s.ctx, s.requestTimeout()), group, ops)
	if end.Call(err); err != nil {
		s.noteReply(err) // without an error it is noted as a proof
	}
	return results, err
}

// prove runs a request. If it is answered without an error, prove extends the lease by what that
// proves; committed says that the request is a write. The exchange counts only if it began and
// ended on the connection of the lease's chain.
func (s *requests) prove(committed bool, request func() error) error {
	gen, _ := s.ds.Conn()
	sent := lease.Now()
	err := request()
	if after, _ := s.ds.Conn(); err != nil || after != gen {
		return err
	}
	s.noteAnswer(gen, sent, committed)
	return nil
}

// Transact sends a transaction of one caller. If it is committed, it proves the lease.
func (s *requests) Transact(ctx context.Context, ops []driver.Op) (results []driver.OpResult, err error) {
	return s.transact(ctx, 1, ops)
}

// transact is Transact for a number of callers. One that servers do not read is not sent: see bounds.
func (s *requests) transact(ctx context.Context, group int, ops []driver.Op) (results []driver.OpResult, err error) {
	size := sizeOf(ops)
	if group == 1 && size >= leastRefused {
		if err := s.common.bounds.refuses(size, s.settings); err != nil {
			return nil, err
		}
	}
	gen, _ := s.ds.Conn()
	err = s.prove(true, func() (err error) {
		results, err = s.commit(ctx, ops)
		return err
	})
	s.common.bounds.note(&s.sizes, gen, group, size, err)
	return results, err
}

// Newest returns the greatest transaction id of a write that the client knows.
func (s *requests) Newest() int64 { return s.common.order.newest.Load() }

// Note records the id of a committed transaction. seen is what Newest returned before the transaction
// was sent. The error matches errs.ErrTokenRegression: no lock may be granted with this id.
func (s *requests) Note(seen, zxid int64) error {
	first, err := s.common.order.note(seen, zxid)
	if first {
		s.settings.Log().Error("zklock: the ensemble has lost transactions, and tokens would go back: this client acquires no more locks",
			"transaction", HexID(zxid), "seen", HexID(seen),
			"advice", "restart this process when no holder from before is at work; docs/runbook.md has an entry about it")
		close(s.common.order.regressed)
	}
	return err
}

// commit sends a transaction, and records its id if it was committed. A driver of another project may
// not report ids: they are 0 then.
func (s *requests) commit(ctx context.Context, ops []driver.Op) (results []driver.OpResult, err error) {
	seen := s.Newest()
	results, err = s.ds.Multi(ctx, ops)
	if err == nil && len(results) > 0 {
		if zxid := results[0].Zxid; zxid != 0 {
			_ = s.Note(seen, zxid) // this error is for those that acquire
		}
		s.unchecked.Store(false) // behind Note: a Ping that finds it unset relies on what Note has found
	}
	return results, err
}

// CheckOrder sends a write if none was committed on this session, and it follows a loss: see unchecked.
func (s *requests) CheckOrder(ctx context.Context) error {
	if !s.unchecked.Load() {
		return nil
	}
	return s.Repeat(ctx, "verify", func(ctx context.Context, _ driver.Session) error {
		_, err := s.Transact(ctx, []driver.Op{driver.CheckOp(s.settings.Root, driver.AnyVersion)})
		return err
	})
}
