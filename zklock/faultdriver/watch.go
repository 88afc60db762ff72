package faultdriver

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

func (s *session) Watch(ctx context.Context, path string) (driver.Node, <-chan driver.Event, error) {
	return watch(ctx, s, Watch, path, s.Session.Watch)
}

func (s *session) WatchChildren(ctx context.Context, path string) ([]string, driver.Stat, <-chan driver.Event, error) {
	l, events, err := watch(ctx, s, WatchChildren, path, func(ctx context.Context, path string) (list, <-chan driver.Event, error) {
		names, stat, events, err := s.Session.WatchChildren(ctx, path)
		return list{names, stat}, events, err
	})
	return l.names, l.stat, events, err
}

func (s *session) WatchExists(ctx context.Context, path string) (driver.Stat, bool, <-chan driver.Event, error) {
	type answer struct {
		stat  driver.Stat
		found bool
	}
	a, events, err := watch(ctx, s, WatchExists, path, func(ctx context.Context, path string) (answer, <-chan driver.Event, error) {
		stat, found, events, err := s.Session.WatchExists(ctx, path)
		return answer{stat, found}, events, err
	})
	return a.stat, a.found, events, err
}

// watch executes an operation that arms a watch, with the fault that strikes it.
func watch[R any](ctx context.Context, s *session, kind Kind, path string, call func(context.Context, string) (R, <-chan driver.Event, error)) (R, <-chan driver.Event, error) {
	type armed struct {
		read   R
		events <-chan driver.Event
	}
	if s.futile(ctx) {
		return call(ctx, path)
	}
	op, fault := s.faults.strike(Op{Kind: kind, Session: s.ID(), Paths: []string{path}}, s.tries.next)
	a, err := carry(ctx, op, fault, s.over, func(ctx context.Context) (armed, error) {
		read, events, err := call(ctx, path)
		return armed{read, events}, err
	}, nil)
	if err == nil {
		a.events = s.forward(a.events, fault, path)
	}
	return a.read, a.events, err
}

// forward returns the channel for the caller, according to the fault. If the wrapped
// session returns a channel again, after a reconnect, the delay that struck it before stays.
func (s *session) forward(events <-chan driver.Event, fault Fault, path string) <-chan driver.Event {
	s.mu.Lock()
	delayed := s.delayed[events]
	s.mu.Unlock()
	switch {
	case fault.action == loseEvent:
		return s.lose(events, path)
	case delayed != nil:
		return delayed
	case fault.action == delayEvent && fault.wait > 0:
		return s.delay(events, fault.wait)
	}
	return events
}

// lose returns a channel that receives only the end of the session. It does not receive from
// events, because a later call may return that channel.
func (s *session) lose(events <-chan driver.Event, path string) <-chan driver.Event {
	if !s.begin() {
		return events // the session is being closed: events gets its end
	}
	out := make(chan driver.Event, 1) // buffered: there may be no receiver
	go func() {
		defer s.background.Done()
		defer close(out)
		<-s.over
		event := driver.Event{Type: driver.EventSession, Path: path, Err: driver.ErrClosed}
		if state, _ := s.State(); state == driver.Expired {
			event.Err = driver.ErrSessionExpired
		}
		out <- event
	}()
	return out
}

// delay returns a channel that receives the event after d. The end of the session is not
// delayed.
func (s *session) delay(events <-chan driver.Event, d time.Duration) <-chan driver.Event {
	if !s.begin() {
		return events
	}
	out := make(chan driver.Event, 1)
	s.mu.Lock()
	s.delayed[events] = out
	s.mu.Unlock()
	go func() {
		defer s.background.Done()
		defer close(out)
		event, ok := <-events
		s.mu.Lock()
		delete(s.delayed, events)
		s.mu.Unlock()
		if !ok {
			return // another receiver got the event
		}
		if event.Err == nil {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-s.over:
			}
		}
		out <- event
	}()
	return out
}
