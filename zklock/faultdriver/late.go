package faultdriver

import "time"

// later arranges that apply runs when fault says so. If the session is closed before that time,
// apply does not run. If it is closed already, later does nothing and returns false.
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

// hold gives apply to a gate. It returns false if the session is closed already. Close makes
// the gates drop what they hold for the session, under the same mutex: so nothing is added to
// a gate after that.
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

// begin counts a goroutine or request in background; the caller must call background.Done for
// it. It returns false if Close was called. Close sets closed under the same mutex before it
// waits, because a WaitGroup must not grow from zero during Wait.
func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.background.Add(1)
	return true
}
