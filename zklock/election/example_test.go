package election_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// A service works while it leads. Here it stops by itself; most return when ctx ends.
func ExampleElection_Run() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	e := election.New(client, "billing", election.WithValue("10.0.0.7:8080"), election.WithLogger(slog.Default()),
		election.WithMaxHold(24*time.Hour)) // a term lasts no longer, so no leader hangs for ever
	fmt.Println("standing for", e.Name())
	err = e.Run(context.Background(), func(ctx context.Context, t *election.Term) error {
		l, err := e.Leader(ctx)
		fmt.Println(l.Value, "leads, in this term:", l.Token == t.Token(), err)
		return election.ErrStop
	})
	fmt.Println(err)
	// Output:
	// standing for billing
	// 10.0.0.7:8080 leads, in this term: true <nil>
	// <nil>
}

// A candidate that stands once, and says what it is doing.
func ExampleElection_Campaign() {
	ctx := context.Background()
	client, err := zklock.Open("mem://", zklock.WithIdentity(zklock.Identity{Host: "web-3", PID: 812}))
	if err != nil {
		panic(err)
	}
	defer client.Close()

	e := election.New(client, "billing")
	t, err := e.Campaign(ctx)
	if err != nil {
		panic(err)
	}
	l, err := e.Leader(ctx)
	fmt.Println(l.Value, err)
	fmt.Println(t.SetValue(ctx, "ready"))
	candidates, err := e.Candidates(ctx)
	fmt.Println(len(candidates), candidates[0].Label, err)
	fmt.Println(t.Resign(ctx))
	_, err = e.Leader(ctx)
	fmt.Println(errors.Is(err, election.ErrNoLeader))
	// Output:
	// web-3/812 <nil>
	// <nil>
	// 1 ready <nil>
	// <nil>
	// true
}

// A client of the leader follows it.
func ExampleElection_Observe() {
	ctx := context.Background()
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	e := election.New(client, "billing", election.WithValue("10.0.0.7:8080"))
	var t *election.Term
	for l, err := range e.Observe(ctx) {
		switch {
		case err == nil:
			fmt.Println("leader:", l.Value)
			_ = t.Resign(ctx)
		case errors.Is(err, zklock.ErrUnavailable):
			fmt.Println("the leader is not known at the moment")
		case errors.Is(err, election.ErrNoLeader):
			fmt.Println("no leader")
			if t != nil {
				return
			}
			if t, err = e.Campaign(ctx); err != nil {
				panic(err)
			}
		default:
			panic(err)
		}
	}
	// Output:
	// no leader
	// leader: 10.0.0.7:8080
	// no leader
}

// A leader that does not return when its context has ended keeps the others from leading.
// An operator can learn of that, or the process can end itself.
func ExampleWithStuck() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	stuck := make(chan struct{})
	e := election.New(client, "billing", election.WithLogger(nil), election.WithStuck(time.Millisecond, func(t *election.Term) {
		fmt.Println("stuck, and still the leader:", t.Valid())
		close(stuck)
	}))
	ctx, cancel := context.WithCancel(context.Background())
	err = e.Run(ctx, func(context.Context, *election.Term) error {
		cancel()
		<-stuck // a function that ignores its context
		return nil
	})
	fmt.Println(errors.Is(err, context.Canceled))
	// Output:
	// stuck, and still the leader: true
	// true
}

// A leader that resigns when an operator asks it to.
func ExampleWithRevocable() {
	ctx := context.Background()
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	e := election.New(client, "billing", election.WithRevocable())
	err = e.Run(ctx, func(term context.Context, t *election.Term) error {
		l, err := e.Leader(ctx)
		if err != nil {
			return err
		}
		fmt.Println(client.Revoke(ctx, e.Name(), l.Node, "maintenance")) // zklock revoke does the same
		<-term.Done()
		fmt.Println(errors.Is(context.Cause(term), zklock.ErrRevoked), t.Valid())
		return election.ErrStop
	})
	fmt.Println(err)
	// Output:
	// <nil>
	// true true
	// <nil>
}
