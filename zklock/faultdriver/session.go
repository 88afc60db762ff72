package faultdriver

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock/driver"
)

// session is a driver.Session with faults. The methods that are not defined here (ID,
// Timeout, Conn, Server, State) are those of the wrapped session.
type session struct {
	driver.Session

	faults *faults
	tries  attempts

	// over is closed when the session has ended, by expiry or by Close. Operations that
	// wait because of a fault then return.
	over chan struct{}

	// life is the context of requests that are applied late. Close calls end, which ends
	// it. The context of the caller cannot be used, since the call has returned.
	life context.Context
	end  context.CancelFunc

	// background counts the requests that are being applied late, and the goroutines that
	// forward events. Close waits for them.
	background sync.WaitGroup

	// done is closed when the first Close has set outcome to its result, which does not
	// change after that.
	done    chan struct{}
	outcome error

	mu     sync.Mutex
	closed bool               // guarded by mu; Close was called
	gates  map[*Gate]struct{} // guarded by mu; gates that may hold back requests of this session

	// delayed maps a channel of the wrapped session, whose event a fault delays, to the
	// channel that the caller has got instead. An entry stays until the event has come,
	// because the wrapped session may return its channel again.
	delayed map[<-chan driver.Event]<-chan driver.Event // guarded by mu
}

var _ driver.Session = (*session)(nil)

func newSession(s driver.Session, f *faults) *session {
	life, end := context.WithCancel(context.Background())
	w := &session{
		Session: s, faults: f, life: life, end: end,
		over: make(chan struct{}), done: make(chan struct{}), gates: make(map[*Gate]struct{}),
		delayed: make(map[<-chan driver.Event]<-chan driver.Event),
	}
	w.background.Go(w.follow)
	return w
}

// follow closes over when the session has ended, and returns.
func (s *session) follow() {
	defer close(s.over)
	for {
		state, changed := s.Session.State()
		if state.Final() {
			return
		}
		<-changed
	}
}

// Unwrap returns the wrapped session.
func (s *session) Unwrap() driver.Session { return s.Session }

func (s *session) Create(ctx context.Context, path string, data []byte, mode driver.Mode, acl []driver.ACL) (string, error) {
	data, acl = bytes.Clone(data), slices.Clone(acl)
	return do(ctx, s, Create, []string{path}, func(ctx context.Context) (string, error) {
		return s.Session.Create(ctx, path, data, mode, acl)
	})
}

func (s *session) Delete(ctx context.Context, path string, version int32) error {
	_, err := do(ctx, s, Delete, []string{path}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Session.Delete(ctx, path, version)
	})
	return err
}

func (s *session) Get(ctx context.Context, path string) (driver.Node, error) {
	return do(ctx, s, Get, []string{path}, func(ctx context.Context) (driver.Node, error) {
		return s.Session.Get(ctx, path)
	})
}

func (s *session) Set(ctx context.Context, path string, data []byte, version int32) (driver.Stat, error) {
	data = bytes.Clone(data)
	return do(ctx, s, Set, []string{path}, func(ctx context.Context) (driver.Stat, error) {
		return s.Session.Set(ctx, path, data, version)
	})
}

func (s *session) Children(ctx context.Context, path string) ([]string, driver.Stat, error) {
	l, err := do(ctx, s, Children, []string{path}, func(ctx context.Context) (list, error) {
		names, stat, err := s.Session.Children(ctx, path)
		return list{names, stat}, err
	})
	return l.names, l.stat, err
}

// list is the result of a list of children.
type list struct {
	names []string
	stat  driver.Stat
}

func (s *session) Sync(ctx context.Context, path string) error {
	_, err := do(ctx, s, Sync, []string{path}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.Session.Sync(ctx, path)
	})
	return err
}

func (s *session) Multi(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	ops = slices.Clone(ops)
	paths := make([]string, len(ops))
	for i := range ops {
		ops[i].Data, ops[i].ACL = bytes.Clone(ops[i].Data), slices.Clone(ops[i].ACL)
		paths[i] = ops[i].Path
	}
	return do(ctx, s, Multi, paths, func(ctx context.Context) ([]driver.OpResult, error) {
		return s.Session.Multi(ctx, ops)
	})
}

// do executes an operation, with the fault that strikes it. call may run after do has
// returned, so it must not use data that belongs to the caller.
func do[R any](ctx context.Context, s *session, kind Kind, paths []string, call func(context.Context) (R, error)) (R, error) {
	if s.futile(ctx) {
		return call(ctx)
	}
	op, fault := s.faults.strike(Op{Kind: kind, Session: s.ID(), Paths: paths}, s.tries.next)
	if fault.action == late || fault.action == lateAfter {
		var zero R
		apply := func() {
			_, _ = call(s.life) // the caller has got its error already
		}
		if !s.later(fault, apply) {
			return zero, driver.ErrClosed
		}
		return zero, &struckError{Op: op, Fault: fault, Err: driver.ErrConnLoss}
	}
	return carry(ctx, op, fault, s.over, call, nil)
}
