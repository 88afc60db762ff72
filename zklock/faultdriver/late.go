package faultdriver

import "time"

// later has apply run when fault says so, unless the session is closed before.
// It refuses when that has happened already.
func (s *session) later(fault Fault, apply func()) bool {
	if fault.action == late {
		return s.hold(fault.gate, apply)
	}
	if !s.begin() {
		return false
	}
	go func() {
		defer s.background.Done()
		timer := time.NewTimer(fault.wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			apply()
		case <-s.life.Done():
		}
	}()
	return true
}

// hold leaves apply at a gate. The lock orders it with Close, which makes the
// gates forget what they hold for the session: nothing is added behind its back.
func (s *session) hold(g *Gate, apply func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.gates[g] = struct{}{}
	g.add(s, apply)
	return true
}

// begin announces something in the background, which has to call
// background.Done; it refuses when the session is closing. The lock orders it
// with Close: a WaitGroup must not grow from zero while it is waited for.
func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.background.Add(1)
	return true
}
