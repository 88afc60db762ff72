package main

import (
	"context"
	"errors"
	"fmt"
)

// killed kills the holder, and counts down until the heir has the lock.
func (s *story) killed(ctx context.Context, holder, heir *member) error {
	s.print("\n%s\n", s.bold("2  The replica that holds the lock is killed"))
	token, err := holder.ask(ctx, holdLock)
	if err != nil {
		return err
	}
	s.print("   replica 1 holds the lock       token %s\n", token)
	if err := heir.order(holdLock); err != nil {
		return err
	}
	if err := holder.kill(); err != nil {
		return err
	}
	s.print("   replica 1 is killed            replica 2 gets the lock in at most %.0f s\n", s.atMost().Seconds())
	token, after, err := s.countDown(ctx, heir)
	if err != nil {
		return err
	}
	s.print("   replica 2 holds the lock       after %s, token %s\n", after, token)
	return nil
}

// paused pauses the holder after it has read the number of tickets. The heir gets the lock
// and writes. Then the holder continues, and tries to write one less than it had read.
func (s *story) paused(ctx context.Context, holder, heir *member) error {
	s.print("\n%s\n", s.bold("3  The replica that holds the lock is paused, as by a long garbage collection"))
	resume, err := holder.pause()
	if errors.Is(err, errors.ErrUnsupported) {
		s.print("   left out: this system cannot pause a process\n")
		return nil
	}
	if err != nil {
		return err
	}
	s.shop.left.Store(tickets)
	if err := heir.order(holdLock); err != nil {
		return err
	}
	s.print("   replica 2 is paused            replica 3 gets the lock in at most %.0f s\n", s.atMost().Seconds())
	token, after, err := s.countDown(ctx, heir)
	if err != nil {
		return err
	}
	s.print("   replica 3 holds the lock       after %s, token %s\n", after, token)
	answer, err := heir.ask(ctx, writeLess)
	if err != nil {
		return err
	}
	s.print("   replica 3 writes               %s\n", answer)
	if err := resume(); err != nil {
		return err
	}
	if answer, err = holder.ask(ctx, writeLess); err != nil {
		return err
	}
	if answer != "refused" {
		return fmt.Errorf("the late write of a replica that had lost its lock was %s", answer)
	}
	s.print("   replica 2 goes on and writes   %s: the shop has seen a newer token\n", s.green(answer))
	return nil
}
