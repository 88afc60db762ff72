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

// forward passes a watch's event on as fault lets it. A channel that was returned
// before keeps the fault that it met then.
func (s *session) forward(events <-chan driver.Event, fault Fault, path string) <-chan driver.Event {
	s.mu.Lock()
	out := s.forwarded[events]
	s.mu.Unlock()
	switch {
	case out != nil:
		return out
	case fault.action != loseEvent && fault.action != delayEvent, !s.begin():
		return events // if the session is over, its end is in there, or soon will be
	}
	return s.holdBack(events, fault, path)
}

// holdBack makes a channel for an event that a fault delays or loses.
func (s *session) holdBack(events <-chan driver.Event, fault Fault, path string) <-chan driver.Event {
	out := make(chan driver.Event, 1) // nobody has to receive
	s.mu.Lock()
	s.forwarded[events] = out
	s.mu.Unlock()
	go func() {
		defer s.background.Done()
		defer close(out)
		event, ok := <-events
		s.mu.Lock()
		delete(s.forwarded, events)
		s.mu.Unlock()
		switch {
		case !ok && fault.action == delayEvent:
			return // another receiver of the channel had the event
		case event.Err != nil:
			// The session's end is no event that could be lost.
		case fault.action == delayEvent:
			timer := time.NewTimer(fault.wait)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-s.over:
			}
		default:
			<-s.over
			event = driver.Event{Type: driver.EventSession, Path: path, Err: driver.ErrClosed}
			if state, _ := s.State(); state == driver.Expired {
				event.Err = driver.ErrSessionExpired
			}
		}
		out <- event
	}()
	return out
}
