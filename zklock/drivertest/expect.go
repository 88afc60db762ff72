package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// sentinels are all the meanings an error can have. They exclude each other:
// an error that says two things says nothing.
func sentinels() []error {
	return []error{
		driver.ErrConnLoss, driver.ErrNotSent, driver.ErrSessionExpired, driver.ErrClosed,
		driver.ErrNoNode, driver.ErrNodeExists, driver.ErrNotEmpty, driver.ErrBadVersion,
		driver.ErrNoChildrenForEphemerals, driver.ErrNoAuth, driver.ErrAuthFailed,
		driver.ErrInvalidACL, driver.ErrBadArguments, driver.ErrUnimplemented, driver.ErrTooLarge,
		driver.ErrThrottled, driver.ErrQuotaExceeded, driver.ErrRolledBack, driver.ErrProtocol, driver.ErrTLS,
	}
}

// ok demands that there is no error.
func (e *env) ok(err error, what string) {
	e.Helper()
	if err != nil {
		e.Fatalf("%s: %v", what, err)
	}
}

// is demands that err matches want and no other sentinel.
func (e *env) is(err, want error, what string) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("%s: error is %v, want one that matches %q", what, err, want)
	}
	for _, other := range sentinels() {
		if other != want && errors.Is(err, other) {
			e.Fatalf("%s: error %v matches %q as well as %q", what, err, other, want)
		}
	}
}

// isEnded demands that err tells both how the context ended and what that
// means for the request.
func (e *env) isEnded(err, ctxErr, want error, what string) {
	e.Helper()
	e.is(err, want, what)
	if !errors.Is(err, ctxErr) {
		e.Fatalf("%s: error is %v, want one that matches %q as well", what, err, ctxErr)
	}
}

// recv waits for a value.
func recv[T any](e *env, ch <-chan T, what string) T {
	e.Helper()
	select {
	case v := <-ch:
		return v
	case <-e.ctx.Done():
		e.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// returns waits for a call that must not last, though what is wrong with a
// driver may be just that, and returns its error.
func (e *env) returns(what string, call func() error) error {
	e.Helper()
	done := make(chan error, 1)
	go func() { done <- call() }()
	return recv(e, done, what+" to return")
}

// until looks again and again until cond holds.
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
			e.Fatalf("waited in vain until %s", what)
		}
	}
}

// reaches waits until s is in the state want, by the channel that State hands
// out; a state channel that does not close when it should ends the test.
func (e *env) reaches(s driver.Session, want driver.State) {
	e.Helper()
	for {
		state, changed := s.State()
		if state == want {
			return
		}
		if state.Final() {
			e.Fatalf("the session is %v for ever, want %v", state, want)
		}
		select {
		case <-changed:
		case <-e.ctx.Done():
			e.Fatalf("waited in vain for the session to be %v; it is %v", want, state)
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
			e.Fatalf("waited in vain for connection %d; the session is %v on connection %d", generation, state, now)
		}
	}
}

// watch arms a watch.
func (e *env) watch(s driver.Session, path string) (driver.Node, <-chan driver.Event) {
	e.Helper()
	e.ok(s.Sync(e.ctx, path), "sync "+path)
	node, events, err := s.Watch(e.ctx, path)
	e.ok(err, "watch "+path)
	if events == nil {
		e.Fatalf("watch %s: no channel", path)
	}
	return node, events
}

// fires demands one event of that kind, and then the end of the channel.
func (e *env) fires(events <-chan driver.Event, want driver.EventType, path string) {
	e.Helper()
	event := recv(e, events, "a watch of "+path+" to fire as "+want.String())
	if want := (driver.Event{Type: want, Path: path}); event != want {
		e.Fatalf("watch delivered %+v, want %+v", event, want)
	}
	e.ends(events)
}

// endsWith demands that a watch was ended by the end of its session.
func (e *env) endsWith(events <-chan driver.Event, want error, path string) {
	e.Helper()
	event := recv(e, events, "a watch of "+path+" to end with its session")
	if event.Type != driver.EventSession || event.Path != path {
		e.Fatalf("watch delivered %+v, want a session event for %s", event, path)
	}
	e.is(event.Err, want, "the watch's event")
	e.ends(events)
}

// ends demands that a watch's channel is closed without another event.
func (e *env) ends(events <-chan driver.Event) {
	e.Helper()
	select {
	case event, open := <-events:
		if open {
			e.Fatalf("watch delivered %+v as a second event", event)
		}
	case <-e.ctx.Done():
		e.Fatalf("the watch's channel was not closed after its event")
	}
}

// silent demands that a watch has not fired. The session's own Sync is behind
// every event of what was committed before, so an event that should not be
// there is there by now.
func (e *env) silent(s driver.Session, events <-chan driver.Event, path, what string) {
	e.Helper()
	e.ok(s.Sync(e.ctx, path), "sync "+path)
	select {
	case event, open := <-events:
		e.Fatalf("%s: the watch of %s fired: %+v (channel open: %t)", what, path, event, open)
	default:
	}
}

// call is one method that does a request, as the tests that go through all of
// them need it.
type call struct {
	// name is the method's.
	name string

	// do does the request and returns its error.
	do func(ctx context.Context, s driver.Session) error
}

// calls are all requests of a session: reads and writes of path, which exists,
// creation of path/new, and deletion of path/old.
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
		{"multi", func(ctx context.Context, s driver.Session) error {
			_, err := s.Multi(ctx, []driver.Op{driver.CheckOp(path, driver.AnyVersion), driver.CreateOp(path+"/multi", nil, driver.Persistent, everyone())})
			return err
		}},
	}
}
