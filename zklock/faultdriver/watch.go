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

// forward passes a watch's event on as fault lets it. A channel that the session
// returns again, after a reconnect, keeps the delay that it met before.
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

// lose makes a channel that receives nothing but the session's end. The one in whose
// place it is stays as it is: a later call of Watch may return it.
func (s *session) lose(events <-chan driver.Event, path string) <-chan driver.Event {
	if !s.begin() {
		return events // which has the session's end in it, or soon will
	}
	out := make(chan driver.Event, 1) // nobody has to receive
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

// delay makes a channel that receives the event later. The session's end is not
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
			return // another receiver had it
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
