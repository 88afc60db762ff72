package drivertest_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// faulty is a session whose requests can be made wrong in several ways. A field that is zero
// changes nothing.
type faulty struct {
	driver.Session

	// ctx replaces the contexts of requests.
	ctx func(context.Context) context.Context

	// fail replaces their errors.
	fail func(context.Context, error) error

	// retry repeats requests whose outcome is unknown.
	retry bool

	// lazy makes Sync do nothing.
	lazy bool

	// multi and watch replace the methods.
	multi func(context.Context, []driver.Op) ([]driver.OpResult, error)
	watch func(context.Context, string) (driver.Node, <-chan driver.Event, error)

	// children and exists replace the other two methods that arm a watch.
	children func(context.Context, string) ([]string, driver.Stat, <-chan driver.Event, error)
	exists   func(context.Context, string) (driver.Stat, bool, <-chan driver.Event, error)

	// event sends the events of a watch to a channel with room for two.
	event func(chan<- driver.Event, driver.Event)
}

// with returns the wrap function of a flaw: it wraps a session in a faulty, which spoil sets
// up.
func with(spoil func(s *faulty)) func(driver.Session, driver.Connector, time.Duration) driver.Session {
	return func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session {
		f := &faulty{Session: s}
		spoil(f)
		return f
	}
}

// translating returns the wrap function of a flaw: the session reports the error to instead
// of from.
func translating(from, to error) func(driver.Session, driver.Connector, time.Duration) driver.Session {
	return with(func(s *faulty) {
		s.fail = func(ctx context.Context, err error) error {
			switch {
			case !errors.Is(err, from):
				return err
			case ctx.Err() != nil:
				return fmt.Errorf("%w: %w", to, ctx.Err())
			}
			return fmt.Errorf("translated: %w", to)
		}
	})
}

func do[R any](s *faulty, ctx context.Context, call func(context.Context) (R, error)) (R, error) {
	under := ctx
	if s.ctx != nil {
		under = s.ctx(ctx)
	}
	r, err := call(under)
	for s.retry && errors.Is(err, driver.ErrConnLoss) && ctx.Err() == nil {
		r, err = call(under)
	}
	if s.fail != nil {
		err = s.fail(ctx, err)
	}
	return r, err
}

func (s *faulty) Create(ctx context.Context, path string, data []byte, mode driver.Mode, acl []driver.ACL) (string, error) {
	return do(s, ctx, func(ctx context.Context) (string, error) { return s.Session.Create(ctx, path, data, mode, acl) })
}

func (s *faulty) Delete(ctx context.Context, path string, version int32) error {
	_, err := do(s, ctx, func(ctx context.Context) (any, error) { return nil, s.Session.Delete(ctx, path, version) })
	return err
}

func (s *faulty) Get(ctx context.Context, path string) (driver.Node, error) {
	return do(s, ctx, func(ctx context.Context) (driver.Node, error) { return s.Session.Get(ctx, path) })
}

func (s *faulty) Set(ctx context.Context, path string, data []byte, version int32) (driver.Stat, error) {
	return do(s, ctx, func(ctx context.Context) (driver.Stat, error) { return s.Session.Set(ctx, path, data, version) })
}

func (s *faulty) Children(ctx context.Context, path string) (names []string, stat driver.Stat, err error) {
	_, err = do(s, ctx, func(ctx context.Context) (any, error) {
		names, stat, err = s.Session.Children(ctx, path)
		return nil, err
	})
	return names, stat, err
}

func (s *faulty) Sync(ctx context.Context, path string) error {
	if s.lazy {
		return nil
	}
	_, err := do(s, ctx, func(ctx context.Context) (any, error) { return nil, s.Session.Sync(ctx, path) })
	return err
}

func (s *faulty) Multi(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	multi := s.Session.Multi
	if s.multi != nil {
		multi = s.multi
	}
	return do(s, ctx, func(ctx context.Context) ([]driver.OpResult, error) { return multi(ctx, ops) })
}

func (s *faulty) Watch(ctx context.Context, path string) (node driver.Node, events <-chan driver.Event, err error) {
	watch := s.Session.Watch
	if s.watch != nil {
		watch = s.watch
	}
	_, err = do(s, ctx, func(ctx context.Context) (any, error) {
		node, events, err = watch(ctx, path)
		return nil, err
	})
	return node, s.deliver(events, err), err
}

func (s *faulty) WatchChildren(ctx context.Context, path string) (names []string, stat driver.Stat, events <-chan driver.Event, err error) {
	children := s.Session.WatchChildren
	if s.children != nil {
		children = s.children
	}
	_, err = do(s, ctx, func(ctx context.Context) (any, error) {
		names, stat, events, err = children(ctx, path)
		return nil, err
	})
	return names, stat, s.deliver(events, err), err
}

func (s *faulty) WatchExists(ctx context.Context, path string) (stat driver.Stat, found bool, events <-chan driver.Event, err error) {
	exists := s.Session.WatchExists
	if s.exists != nil {
		exists = s.exists
	}
	_, err = do(s, ctx, func(ctx context.Context) (any, error) {
		stat, found, events, err = exists(ctx, path)
		return nil, err
	})
	return stat, found, s.deliver(events, err), err
}

// deliver returns the channel for the caller: events go through event, if it is set.
func (s *faulty) deliver(in <-chan driver.Event, err error) <-chan driver.Event {
	if err != nil || s.event == nil {
		return in
	}
	out := make(chan driver.Event, 2)
	go func() {
		defer close(out)
		s.event(out, <-in)
	}()
	return out
}

// oneByOne returns the Multi of a driver without transactions: it executes one operation
// after the other.
func oneByOne(s driver.Session) func(context.Context, []driver.Op) ([]driver.OpResult, error) {
	return func(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
		results := make([]driver.OpResult, len(ops))
		for i, op := range ops {
			r, err := s.Multi(ctx, []driver.Op{op})
			if err != nil {
				for k := range results {
					results[k] = driver.OpResult{Err: driver.ErrRolledBack}
				}
				results[i].Err = err
				return results, err
			}
			results[i] = r[0]
		}
		return results, nil
	}
}

// resurrecting wraps a session that executes requests in a new session when the old one has
// expired.
func resurrecting(s driver.Session, c driver.Connector, timeout time.Duration) driver.Session {
	f := &faulty{Session: s}
	f.fail = func(ctx context.Context, err error) error {
		if !errors.Is(err, driver.ErrSessionExpired) {
			return err
		}
		next, err := c.Connect(ctx, timeout)
		if err != nil {
			return err
		}
		// Any request in the new session is wrong, so a Sync is enough here.
		err = next.Sync(ctx, "/")
		return errors.Join(err, next.Close(ctx))
	}
	return f
}

// optimist reports the timeout that was asked for, not the one that was granted.
type optimist struct {
	driver.Session
	asked time.Duration
}

func (s optimist) Timeout() time.Duration { return s.asked }

// returning reads after a reconnect what it has read first.
type returning struct {
	driver.Session
	first atomic.Pointer[driver.Node]
}

func (s *returning) Get(ctx context.Context, path string) (driver.Node, error) {
	n, err := s.Session.Get(ctx, path)
	if err == nil && !s.first.CompareAndSwap(nil, &n) {
		if generation, _ := s.Conn(); generation > 1 {
			return *s.first.Load(), nil
		}
	}
	return n, err
}

// unmoved always reports that it is on its first connection.
type unmoved struct{ driver.Session }

func (s unmoved) Conn() (uint64, time.Time) {
	_, sent := s.Session.Conn()
	return 1, sent
}

// tardy reports a reconnect when Conn is called the next time.
type tardy struct {
	driver.Session
	shown atomic.Uint64
}

func (s *tardy) Conn() (uint64, time.Time) {
	generation, sent := s.Session.Conn()
	return max(s.shown.Swap(generation), 1), sent
}

// dated always reports that the handshake was sent just now.
type dated struct{ driver.Session }

func (s dated) Conn() (uint64, time.Time) {
	generation, _ := s.Session.Conn()
	return generation, time.Now()
}

// deaf never closes the channel of State.
type deaf struct{ driver.Session }

func (s deaf) State() (driver.State, <-chan struct{}) {
	state, _ := s.Session.State()
	return state, make(chan struct{})
}

// lingering does nothing in Close.
type lingering struct{ driver.Session }

func (s *lingering) Close(context.Context) error { return nil }

// glad returns nil from Close, even if closing failed.
type glad struct{ driver.Session }

func (s glad) Close(ctx context.Context) error {
	_ = s.Session.Close(ctx)
	return nil
}

// impatient returns from later calls of Close when their own context ends.
type impatient struct {
	driver.Session
	called atomic.Bool
}

func (s *impatient) Close(ctx context.Context) error {
	if s.called.Swap(true) && ctx.Err() != nil {
		return ctx.Err()
	}
	return s.Session.Close(ctx)
}
