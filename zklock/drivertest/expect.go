package drivertest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// sentinels returns all errors of package driver. They exclude each other: a caller could
// not act on an error that matches two of them.
func sentinels() []error {
	return []error{
		driver.ErrConnLoss, driver.ErrNotSent, driver.ErrSessionExpired, driver.ErrClosed,
		driver.ErrNoNode, driver.ErrNodeExists, driver.ErrNotEmpty, driver.ErrBadVersion,
		driver.ErrNoChildrenForEphemerals, driver.ErrNoAuth, driver.ErrAuthFailed,
		driver.ErrInvalidACL, driver.ErrBadArguments, driver.ErrUnimplemented, driver.ErrTooLarge, driver.ErrReplyTooLarge,
		driver.ErrThrottled, driver.ErrQuotaExceeded, driver.ErrLocalSession, driver.ErrRolledBack, driver.ErrProtocol, driver.ErrTLS,
	}
}

// ok fails the test if err is not nil.
func (e *env) ok(err error, what string) {
	e.Helper()
	if err != nil {
		e.Fatalf("%s: %v", what, err)
	}
}

// is checks that err matches want and no other sentinel.
func (e *env) is(err, want error, what string) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("%s: error is %v, want one that matches %q", what, err, want)
	}
	for _, other := range sentinels() {
		if other != want && errors.Is(err, other) {
			e.Fatalf("%s: error %v matches %q, and also %q", what, err, want, other)
		}
	}
}

// isEnded checks that err matches both ctxErr, which says how the context ended, and want,
// which says what that means for the request.
func (e *env) isEnded(err, ctxErr, want error, what string) {
	e.Helper()
	e.is(err, want, what)
	if !errors.Is(err, ctxErr) {
		e.Fatalf("%s: error is %v, want one that also matches %q", what, err, ctxErr)
	}
}

// recv waits for a value, or for ch to be closed.
func recv[T any](e *env, ch <-chan T, what string) T {
	e.Helper()
	select {
	case v := <-ch:
		return v
	case <-e.ctx.Done():
		e.Fatalf("the test's time is over: still waiting for %s", what)
		panic("unreachable")
	}
}

// returns makes a call that must return soon, and returns its error. If a faulty driver
// never returns, the test fails instead of hanging.
func (e *env) returns(what string, call func() error) error {
	e.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	return recv(e, done, what+" to return")
}

// until calls cond again and again, until it returns true.
func (e *env) until(what string, cond func() bool) {
	e.Helper()
	const first, last = time.Millisecond, 50 * time.Millisecond
	wait := first
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for !cond() {
		select {
		case <-timer.C:
			wait = min(2*wait, last)
			timer.Reset(wait)
		case <-e.ctx.Done():
			e.Fatalf("the test's time is over: still waiting until %s", what)
		}
	}
}

// reaches waits until s is in the state want. It waits on the channel that State returns: if
// that is not closed when it should be, the test fails.
func (e *env) reaches(s driver.Session, want driver.State) {
	e.Helper()
	for {
		state, changed := s.State()
		if state == want {
			return
		}
		if state.Final() {
			e.Fatalf("the session is in the final state %v, want %v", state, want)
		}
		select {
		case <-changed:
		case <-e.ctx.Done():
			e.Fatalf("the test's time is over: still waiting for the session to be %v; it is %v", want, state)
		}
	}
}

// reconnects waits until s has completed generation handshakes, and is
// connected.
func (e *env) reconnects(s driver.Session, generation uint64) {
	e.Helper()
	for {
		state, changed := s.State()
		if now, _ := s.Conn(); now >= generation && state == driver.Connected {
			return
		}
		select {
		case <-changed:
		case <-e.ctx.Done():
			now, _ := s.Conn()
			e.Fatalf("the test's time is over: still waiting for connection %d; the session is %v on connection %d", generation, state, now)
		}
	}
}

// watch syncs, and arms a watch.
func (e *env) watch(s driver.Session, path string) (driver.Node, <-chan driver.Event) {
	e.Helper()
	e.ok(s.Sync(e.ctx, path), "sync "+path)
	node, events, err := s.Watch(e.ctx, path)
	e.ok(err, "watch "+path)
	if events == nil {
		e.Fatalf("watch %s returned no channel", path)
	}
	return node, events
}

// watchChildren syncs, and arms a watch on a znode's children. The names are sorted.
func (e *env) watchChildren(s driver.Session, path string) ([]string, <-chan driver.Event) {
	e.Helper()
	e.ok(s.Sync(e.ctx, path), "sync "+path)
	names, _, events, err := s.WatchChildren(e.ctx, path)
	e.ok(err, "watch the children of "+path)
	if events == nil {
		e.Fatalf("watching the children of %s returned no channel", path)
	}
	slices.Sort(names)
	return names, events
}

// watchExists syncs, and arms a watch on a znode that may be missing.
func (e *env) watchExists(s driver.Session, path string, exists bool) (driver.Stat, <-chan driver.Event) {
	e.Helper()
	e.ok(s.Sync(e.ctx, path), "sync "+path)
	stat, found, events, err := s.WatchExists(e.ctx, path)
	e.ok(err, "watch the existence of "+path)
	if found != exists {
		e.Fatalf("%s exists: %t, want %t", path, found, exists)
	}
	if events == nil {
		e.Fatalf("watching the existence of %s returned no channel", path)
	}
	return stat, events
}

// fires checks that a watch delivers one event of type want, and then closes its channel.
func (e *env) fires(events <-chan driver.Event, want driver.EventType, path string) {
	e.Helper()
	event := recv(e, events, "a watch of "+path+" to fire as "+want.String())
	if want := (driver.Event{Type: want, Path: path}); event != want {
		e.Fatalf("the watch delivered %+v, want %+v", event, want)
	}
	e.ends(events)
}

// endsWith checks that the end of its session ends a watch, with an event whose error matches
// want.
func (e *env) endsWith(events <-chan driver.Event, want error, path string) {
	e.Helper()
	event := recv(e, events, "a watch of "+path+" to end with its session")
	if event.Type != driver.EventSession || event.Path != path {
		e.Fatalf("the watch delivered %+v, want a session event for %s", event, path)
	}
	e.is(event.Err, want, "the watch's event")
	e.ends(events)
}

// ends checks that a watch's channel is closed without another event.
func (e *env) ends(events <-chan driver.Event) {
	e.Helper()
	select {
	case event, open := <-events:
		if open {
			e.Fatalf("the watch delivered a second event: %+v", event)
		}
	case <-e.ctx.Done():
		e.Fatalf("the channel of the watch was not closed after its event")
	}
}

// silent fails the test if a watch has fired. It syncs first: the events of all changes that
// were committed before a Sync precede its reply, so an event that the driver delivers wrongly
// has been delivered by then.
func (e *env) silent(s driver.Session, events <-chan driver.Event, path, what string) {
	e.Helper()
	e.ok(s.Sync(e.ctx, path), "sync "+path)
	select {
	case event, open := <-events:
		e.Fatalf("%s: the watch of %s fired: %+v (channel open: %t)", what, path, event, open)
	default:
	}
}

// call is a call of one method that makes a request, for the tests that try all of them.
type call struct {
	// name is the name of the method.
	name string

	// do makes the request and returns its error.
	do func(ctx context.Context, s driver.Session) error
}

// calls returns a call for each request method of a session. They read and write path, which
// exists, create path/new and path/multi, and delete path/old.
func calls(path string) []call {
	return []call{
		{"create", func(ctx context.Context, s driver.Session) error {
			_, err := s.Create(ctx, path+"/new", nil, driver.Persistent, everyone())
			return err
		}},
		{"delete", func(ctx context.Context, s driver.Session) error {
			return s.Delete(ctx, path+"/old", driver.AnyVersion)
		}},
		{"get", func(ctx context.Context, s driver.Session) error {
			_, err := s.Get(ctx, path)
			return err
		}},
		{"set", func(ctx context.Context, s driver.Session) error {
			_, err := s.Set(ctx, path, nil, driver.AnyVersion)
			return err
		}},
		{"children", func(ctx context.Context, s driver.Session) error {
			_, _, err := s.Children(ctx, path)
			return err
		}},
		{"sync", func(ctx context.Context, s driver.Session) error { return s.Sync(ctx, path) }},
		{"watch", func(ctx context.Context, s driver.Session) error {
			_, _, err := s.Watch(ctx, path)
			return err
		}},
		{"watch children", func(ctx context.Context, s driver.Session) error {
			_, _, _, err := s.WatchChildren(ctx, path)
			return err
		}},
		{"watch exists", func(ctx context.Context, s driver.Session) error {
			_, _, _, err := s.WatchExists(ctx, path)
			return err
		}},
		{"multi", func(ctx context.Context, s driver.Session) error {
			_, err := s.Multi(ctx, []driver.Op{driver.CheckOp(path, driver.AnyVersion), driver.CreateOp(path+"/multi", nil, driver.Persistent, everyone())})
			return err
		}},
	}
}
