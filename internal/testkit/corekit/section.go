package corekit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Section is a critical section: it counts the goroutines in it, and collects what went wrong.
type Section struct {
	Room int // how many there may be

	mu     sync.Mutex
	now    int      // guarded by mu
	Faults []string // guarded by mu; a test reads them when all goroutines have ended
}

// Enter counts a goroutine in. One too many is a fault.
func (s *Section) Enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now++; s.now > s.Room {
		s.Faults = append(s.Faults, fmt.Sprintf("%d goroutines are in the critical section, want at most %d", s.now, s.Room))
	}
}

// Leave counts a goroutine out.
func (s *Section) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
}

// HasRoom reports whether another goroutine may enter.
func (s *Section) HasRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now < s.Room
}

// Fault records what went wrong.
func (s *Section) Fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Faults = append(s.Faults, fmt.Sprintf(format, args...))
}

// Work acquires, holds for a while, and releases, as many times as given.
func (s *Section) Work(a zklock.Acquirer, times int, stay time.Duration) {
	ctx := context.Background()
	for range times {
		// A waiter that is never woken fails after an hour. Otherwise the bubble's clock
		// would run on for ever.
		bounded, cancel := context.WithTimeout(ctx, time.Hour)
		l, err := a.Acquire(bounded)
		cancel()
		if err != nil {
			s.Fault("acquire: %v", err)
			return
		}
		s.Enter()
		work := time.NewTimer(stay)
		select {
		case <-work.C:
		case <-l.Done():
			s.Fault("lost: %v", l.Err())
		}
		s.Leave()
		if err := l.Release(ctx); err != nil && !errors.Is(err, zklock.ErrReleasePending) {
			s.Fault("release: %v", err)
		}
	}
}

// Acquire returns a lock, or nil if that failed, which makes the run fail.
func (s *Section) Acquire(a zklock.Acquirer, opts ...zklock.AcquireOption) *zklock.Lock {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	l, err := a.Acquire(ctx, opts...)
	if err != nil {
		s.Fault("acquire: %v", err)
		return nil
	}
	return l
}

// Release gives a lock back. An error is a fault, unless the release goes on in the background.
func (s *Section) Release(l *zklock.Lock) {
	if err := l.Release(context.Background()); err != nil && !errors.Is(err, zklock.ErrReleasePending) {
		s.Fault("release: %v", err)
	}
}
