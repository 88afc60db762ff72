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
	url    string // of the ensemble
	fleet  *fleet
	shop   *shop
}

// play plays the three scenes. Its error says what should not have happened.
func (s *story) play(ctx context.Context) error {
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

// atMost is how long the ensemble takes to end the session of a replica that fell silent.
func (s *story) atMost() time.Duration { return (s.fleet.timeout + s.fleet.tick).Round(time.Second) }

// countDown waits until the heir has the lock. Each second it prints how many seconds that can
// still take at most.
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
