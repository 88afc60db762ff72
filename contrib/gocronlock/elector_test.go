package gocronlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/contrib/gocronlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// electors returns two candidates of one election.
func electors(t *testing.T) (first, second *gocronlock.Elector, expire func()) {
	t.Helper()
	c, e := zklocktest.New(t)
	first = gocronlock.NewElector(election.New(c, "cron", election.WithValue("a")))
	synctest.Wait()
	second = gocronlock.NewElector(election.New(client(t, e), "cron", election.WithValue("b")))
	synctest.Wait()
	t.Cleanup(func() { _ = first.Close(); _ = second.Close() })
	return first, second, func() { e.ExpireAll() }
}

// leads returns whether each of the electors leads.
func leads(t *testing.T, electors ...*gocronlock.Elector) (found []bool) {
	t.Helper()
	for _, e := range electors {
		err := e.IsLeader(t.Context())
		if err != nil && !errors.Is(err, gocronlock.ErrNotLeader) {
			t.Errorf("IsLeader: %v, want ErrNotLeader", err)
		}
		found = append(found, err == nil)
	}
	return found
}

// One candidate leads, until it is closed or loses its lock. It does not resign while Do works.
func TestElector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, _ := electors(t)
		if l := leads(t, first, second); !l[0] || l[1] {
			t.Fatalf("leaders: %v, want the first", l)
		}
		if err := second.Do(t.Context(), func(context.Context) error { t.Error("Do called the function of a candidate"); return nil }); !errors.Is(err, gocronlock.ErrNotLeader) {
			t.Errorf("Do of a candidate that does not lead: %v, want ErrNotLeader", err)
		}
		finish, closed := make(chan struct{}), make(chan error, 1)
		go func() {
			_ = first.Do(t.Context(), func(ctx context.Context) error {
				if l, ok := zklock.FromContext(ctx); !ok || l.Name() != "cron" {
					t.Error("the context of Do does not carry the lock of the term")
				}
				<-finish
				return nil
			})
		}()
		synctest.Wait()
		go func() { closed <- first.Close() }()
		synctest.Wait()
		if l := leads(t, first, second); l[0] || l[1] || len(closed) != 0 {
			t.Errorf("leaders while the work of the first goes on: %v, want none", l)
		}
		close(finish)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if l := leads(t, first, second); l[0] || !l[1] {
			t.Errorf("leaders after Close: %v, want the second", l)
		}
		if err := first.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
	})
}

// When the lock is lost, the context of Do ends, Do returns the loss, and the candidate stands
// again.
func TestElectorLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, expire := electors(t)
		err := first.Do(t.Context(), func(ctx context.Context) error {
			expire()
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), zklock.ErrLost) {
				t.Errorf("the context ended with %v, want the loss", context.Cause(ctx))
			}
			if l := leads(t, first); l[0] {
				t.Error("the candidate leads after its loss")
			}
			return nil
		})
		if !errors.Is(err, zklock.ErrLost) {
			t.Errorf("Do: %v, want the loss", err)
		}
		time.Sleep(10 * time.Second) // of virtual time: pauses of the election
		if l := leads(t, first, second); l[0] == l[1] {
			t.Errorf("leaders some time after the loss: %v, want one", l)
		}
	})
}

// A candidacy that can not succeed ends, and IsLeader and Close say why.
func TestElectorThatCannotLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := zklocktest.New(t)
		e := gocronlock.NewElector(election.New(c, "a/../b"))
		synctest.Wait()
		if err := e.IsLeader(t.Context()); !errors.Is(err, gocronlock.ErrNotLeader) || !errors.Is(err, zklock.ErrInvalidName) {
			t.Errorf("IsLeader: %v, want one that matches ErrNotLeader and ErrInvalidName", err)
		}
		if err := e.Close(); !errors.Is(err, zklock.ErrInvalidName) {
			t.Errorf("Close: %v, want ErrInvalidName", err)
		}
	})
}
