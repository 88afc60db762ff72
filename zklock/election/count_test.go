package election_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// cost returns the requests of f, without transactions: heartbeats are transactions.
func cost(e *memdriver.Ensemble, f func()) memcontrol.Ops {
	synctest.Wait()
	a := memcontrol.Of(e).Ops()
	f()
	synctest.Wait()
	b := memcontrol.Of(e).Ops()
	return memcontrol.Ops{
		Creates: b.Creates - a.Creates, Deletes: b.Deletes - a.Deletes, Sets: b.Sets - a.Sets, Gets: b.Gets - a.Gets,
		Watches: b.Watches - a.Watches, WatchChildren: b.WatchChildren - a.WatchChildren, WatchExists: b.WatchExists - a.WatchExists,
		Children: b.Children - a.Children, Syncs: b.Syncs - a.Syncs, Events: b.Events - a.Events,
	}
}

func wantCost(t *testing.T, what string, got, want memcontrol.Ops) {
	t.Helper()
	if got != want {
		t.Errorf("%s cost %+v, want %+v", what, got, want)
	}
}

// With 1,000 candidates a change of the leader costs a few requests, because each candidate
// watches its predecessor only.
func TestAThousandCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const candidates, processes = 1000, 10
		e := memdriver.New()
		op := connect(t, e)
		if err := op.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		began := make(chan *election.Term, 10)
		done := make(chan struct{}, candidates)
		for range processes {
			c := connect(t, e)
			for range candidates / processes {
				go func() {
					defer func() { done <- struct{}{} }()
					_ = election.New(c, "x").Run(ctx, func(ctx context.Context, term *election.Term) error {
						began <- term
						<-ctx.Done()
						return nil
					})
				}()
			}
		}
		term := <-began
		time.Sleep(5 * time.Second) // all candidates have arrived and rest
		if n := nodes(e); n != candidates {
			t.Fatalf("%d nodes, want %d", n, candidates)
		}
		own := election.New(op, "x")
		wantCost(t, "Candidates", cost(e, func() {
			if all, err := own.Candidates(t.Context()); err != nil || len(all) != candidates {
				t.Errorf("%d candidates, %v", len(all), err)
			}
		}), memcontrol.Ops{Syncs: 1, Children: 1, Gets: candidates})
		wantCost(t, "Leader", cost(e, func() {
			if l, err := own.Leader(t.Context()); err != nil || l.Token != term.Token() {
				t.Errorf("leader %v, %v, want the token %v", l, err, term.Token())
			}
		}), memcontrol.Ops{Syncs: 1, Children: 1, Gets: candidates})
		seen := map[zklock.Token]bool{term.Token(): true}
		for range 10 {
			var next *election.Term
			got := cost(e, func() {
				resign(t, term)
				next = <-began
			})
			if got.Gets+got.Watches+got.WatchChildren+got.WatchExists+got.Children > 5 || got.Creates+got.Sets > 0 || got.Events > 5 {
				t.Errorf("a resignation with %d candidates cost %+v", candidates, got)
			}
			if next.Token().Compare(term.Token()) <= 0 || seen[next.Token()] {
				t.Errorf("token %v after %v", next.Token(), term.Token())
			}
			seen[next.Token()] = true
			term = next
		}
		cancel()
		for range candidates {
			<-done
		}
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes after the end, want none", n)
		}
	})
}

// Candidates of one client have a place each. No two have the same token, although a client
// sends requests of one moment in one transaction.
func TestEachTermHasATokenOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := open(t, zklock.Config{Connector: e.Connector(), PoolMaxSessions: 1, Keep: 10 * time.Second})
		first := campaign(t, election.New(c, "x"))
		got := make(chan *election.Term, 10)
		for i := range 10 {
			go func() {
				term, err := election.New(c, "x", election.WithValue(fmt.Sprint(i))).Campaign(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				got <- term
			}()
		}
		synctest.Wait()
		all, err := election.New(c, "x").Candidates(t.Context())
		if err != nil || len(all) != 11 {
			t.Errorf("%d candidates, %v, want 11", len(all), err)
		}
		last := first.Token()
		resign(t, first)
		for range 10 {
			term := <-got
			if now := term.Token(); now.Zxid <= last.Zxid || now.Turn != 0 {
				t.Errorf("token %v after %v, want a greater Zxid and the turn 0", now, last)
			}
			last = term.Token()
			resign(t, term)
		}
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes after the last resignation, want none", n)
		}
	})
}

// The requests of one term, and of an observer.
func TestATermCountsItsRequests(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b, op := connect(t, e), connect(t, e), connect(t, e)
		for _, c := range []*zklock.Client{a, b, op} {
			if err := c.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		v := observe(t, election.New(op, "x"))
		v.next(t, "before the first term", "no leader")
		first := campaign(t, election.New(a, "x", election.WithValue("a")))
		second := standing(t, election.New(b, "x", election.WithValue("b")))
		v.next(t, "a term", "a")
		passing := func(f func()) memcontrol.Ops {
			got := cost(e, func() { f(); time.Sleep(time.Second) })
			got.Syncs = 0 // of the heartbeats in that second
			return got
		}
		// The holder, the waiter behind it and the observer watch the node again.
		wantCost(t, "a value", passing(func() {
			if err := first.SetValue(t.Context(), "A"); err != nil {
				t.Error(err)
			}
		}), memcontrol.Ops{Gets: 1, Sets: 1, Watches: 3, Events: 2})
		v.next(t, "a value", "A")
		var next *election.Term
		// The event grants the waiter its term, and its own node is watched from now on. The observer reads that node
		// too, and lists the queue.
		wantCost(t, "a resignation", passing(func() {
			resign(t, first)
			next = <-second
		}), memcontrol.Ops{Watches: 1, WatchChildren: 1, Events: 4})
		v.next(t, "a resignation", "b")
		resign(t, next)
	})
}
