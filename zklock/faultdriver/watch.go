package faultdriver

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

func (s *session) Watch(ctx context.Context, path string) (driver.Node, <-chan driver.Event, error) {
	type armed struct {
		node   driver.Node
		events <-chan driver.Event
	}
	if s.futile(ctx) {
		return s.Session.Watch(ctx, path)
	}
	op, fault := s.faults.strike(Op{Kind: Watch, Session: s.ID(), Paths: []string{path}}, s.tries.next)
	a, err := carry(ctx, op, fault, s.over, func(ctx context.Context) (armed, error) {
		node, events, err := s.Session.Watch(ctx, path)
		return armed{node, events}, err
	}, nil)
	if err == nil {
		a.events = s.forward(a.events, fault, path)
	}
	return a.node, a.events, err
}

// forward returns the channel for the caller of Watch, according to the fault. If the wrapped
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
	case fault.action == delayEvent:
		return s.delay(events, fault.wait)
	}
	return events
}

// lose returns a channel that receives only the end of the session. It does not receive from
// events, because a later call of Watch may return that channel.
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
