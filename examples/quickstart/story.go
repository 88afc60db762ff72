package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	tickets   = 10
	customers = 30
	replicas  = 3
)

// story shows in three scenes why the library exists, on one screen.
type story struct {
	out    io.Writer
	colour bool
	url    string // the ensemble's
	fleet  *fleet
	shop   *shop
}

// tell plays the three scenes, and returns what should not have happened.
func (s *story) tell(ctx context.Context) error {
	var err error
	if s.fleet, err = newFleet(s.url); err != nil {
		return err
	}
	defer s.fleet.close()
	if s.shop, err = openShop(); err != nil {
		return err
	}
	defer s.shop.close()

	var crew []*member
	defer func() {
		for _, m := range crew {
			m.end()
		}
	}()
	for range replicas {
		m, err := s.fleet.start(ctx, s.shop.url)
		if err != nil {
			return err
		}
		crew = append(crew, m)
	}

	if err := s.sales(ctx, crew); err != nil {
		return err
	}
	if err := s.killed(ctx, crew[0], crew[1]); err != nil {
		return err
	}
	if err := s.paused(ctx, crew[1], crew[2]); err != nil {
		return err
	}
	s.print("\n%s: with the lock, no ticket was sold twice, and no late write got through\n", s.green("ok"))
	return nil
}

// sales lets all replicas sell at the same time, without the lock and with it.
func (s *story) sales(ctx context.Context, crew []*member) error {
	s.print("\n%s\n", s.bold(fmt.Sprintf("1  %d replicas of a shop sell %d tickets to %d customers", replicas, tickets, customers)))
	for _, order := range []string{sellWithoutLock, sellWithLock} {
		s.shop.left.Store(tickets)
		sold, err := sellOut(ctx, crew, order)
		if err != nil {
			return err
		}
		how, seen := "with a lock", s.green(fmt.Sprintf("%d sold", sold))
		switch {
		case order == sellWithoutLock && sold > tickets:
			how, seen = "without a lock", s.red(fmt.Sprintf("%d sold: %d customers have no seat", sold, sold-tickets))
		case order == sellWithoutLock:
			how, seen = "without a lock", fmt.Sprintf("%d sold, by luck", sold)
		case sold != tickets:
			return fmt.Errorf("exclusion is broken: %d of %d tickets were sold with the lock", sold, tickets)
		}
		s.print("   %-17s%s\n", how, seen)
	}
	return nil
}

// sellOut gives each replica its share of the customers, and returns how many got a ticket.
func sellOut(ctx context.Context, crew []*member, order string) (int, error) {
	var wg sync.WaitGroup
	sold, errs := make([]int, len(crew)), make([]error, len(crew))
	for i, m := range crew {
		wg.Go(func() {
			for range customers / len(crew) {
				answer, err := m.ask(ctx, order)
				if err != nil {
					errs[i] = err
					return
				}
				if answer == "sold" {
					sold[i]++
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range sold {
		total += n
	}
	return total, errors.Join(errs...)
}

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

// paused pauses the holder, which has read the number of tickets, until the heir has
// the lock and has written; then the holder goes on, and writes what it has read.
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

// atMost is how long the ensemble takes to end the session of a replica that fell silent.
func (s *story) atMost() time.Duration { return (s.fleet.timeout + s.fleet.tick).Round(time.Second) }

// countDown prints the seconds that are left at most, until the heir has the lock.
func (s *story) countDown(ctx context.Context, heir *member) (token, after string, err error) {
	began := time.Now()
	second := time.NewTicker(time.Second)
	defer second.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		token, err = heir.answer(ctx)
	}()
	s.print("   seconds left                  ")
	for left := s.atMost(); ; left = max(left-time.Second, 0) {
		if left <= 15*time.Second || left%(10*time.Second) == 0 {
			s.print(" %.0f", left.Seconds())
		}
		select {
		case <-second.C:
		case <-done:
			s.print("\n")
			return token, fmt.Sprintf("%.1f s", time.Since(began).Seconds()), err
		}
	}
}

func (s *story) print(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

func (s *story) bold(text string) string  { return s.in("1", text) }
func (s *story) red(text string) string   { return s.in("31", text) }
func (s *story) green(text string) string { return s.in("32", text) }

// in returns text in a terminal's colour or weight, if there is to be any.
func (s *story) in(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
