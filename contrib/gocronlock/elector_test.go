package gocronlock_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/contrib/gocronlock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
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

// wantLeaders checks which of the electors lead.
func wantLeaders(t *testing.T, when string, electors []*gocronlock.Elector, want ...bool) {
	t.Helper()
	if got := leads(t, electors...); !slices.Equal(got, want) {
		t.Errorf("leaders %s: %v, want %v", when, got, want)
	}
}

// One candidate leads until it is closed. It does not resign while Do works.
func TestElector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, _ := electors(t)
		both := []*gocronlock.Elector{first, second}
		wantLeaders(t, "at the beginning", both, true, false)
		if err := second.Do(t.Context(), func(context.Context) error { t.Error("Do called the function of a candidate"); return nil }); !errors.Is(err, gocronlock.ErrNotLeader) {
			t.Errorf("Do of a candidate that does not lead: %v, want ErrNotLeader", err)
		}
		broken := errors.New("broken")
		finish, done, closed := make(chan struct{}), make(chan error, 1), make(chan error, 1)
		go func() {
			done <- first.Do(t.Context(), func(ctx context.Context) error {
				if l, ok := zklock.FromContext(ctx); !ok || l.Name() != "cron" {
					t.Error("the context of Do does not carry the lock of the term")
				}
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, gocronlock.ErrNotLeader) {
					t.Errorf("Close ended the context of Do with %v, want ErrNotLeader", cause)
				}
				<-finish
				return broken
			})
		}()
		time.Sleep(time.Minute) // of virtual time
		wantLeaders(t, "while the first works", both, true, false)
		go func() { closed <- first.Close() }()
		synctest.Wait()
		wantLeaders(t, "while the work goes on after Close", both, false, false)
		if len(closed) != 0 {
			t.Error("Close has not waited for the function of Do")
		}
		close(finish)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, broken) {
			t.Errorf("Do: %v, want the error of its function", err)
		}
		synctest.Wait()
		wantLeaders(t, "after Close", both, false, true)
		if err := first.Close(); err != nil {
			t.Errorf("the second Close: %v", err)
		}
	})
}

// The context of Do ends with the caller's too.
func TestElectorDoEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, _ := electors(t)
		ctx, cancel := context.WithCancel(t.Context())
		err := first.Do(ctx, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Do: %v, want the end of its context", err)
		}
		wantLeaders(t, "afterwards", []*gocronlock.Elector{first, second}, true, false)
	})
}

// When the lock is lost, the context of Do ends, the candidate leads no more, and Do returns the
// loss. Both candidates stand again.
func TestElectorLost(t *testing.T) {
	broken := errors.New("broken")
	for what, returned := range map[string]error{"nil": nil, "an error": broken} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second, expire := electors(t)
				err := first.Do(t.Context(), func(ctx context.Context) error {
					if ctx.Err() != nil {
						t.Error("the context has ended before the loss")
					}
					expire()
					<-ctx.Done()
					if !errors.Is(context.Cause(ctx), zklock.ErrLost) {
						t.Errorf("the context ended with %v, want the loss", context.Cause(ctx))
					}
					wantLeaders(t, "after the loss", []*gocronlock.Elector{first}, false)
					if err := first.Do(t.Context(), func(context.Context) error { t.Error("Do called another function after the loss"); return nil }); !errors.Is(err, gocronlock.ErrNotLeader) {
						t.Errorf("Do after the loss: %v, want ErrNotLeader", err)
					}
					return returned
				})
				if !errors.Is(err, zklock.ErrLost) || returned != nil && !errors.Is(err, returned) {
					t.Errorf("Do: %v, want the loss, and the function's error", err)
				}
				time.Sleep(time.Minute) // of virtual time: pauses of the election
				found := leads(t, first, second)
				if found[0] == found[1] {
					t.Fatalf("leaders a minute after the loss: %v, want one", found)
				}
				// The other one stands too: it leads when the leader is closed.
				for i, e := range []*gocronlock.Elector{first, second} {
					if found[i] {
						if err := e.Close(); err != nil {
							t.Error(err)
						}
					}
				}
				time.Sleep(time.Minute)
				wantLeaders(t, "after the close of the leader", []*gocronlock.Elector{first, second}, !found[0], !found[1])
			})
		})
	}
}

// A leader that is cut off never leads at the same time as the next one.
func TestElectorCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := zklocktest.New(t)
		first := gocronlock.NewElector(election.New(c, "cron"))
		defer first.Close()
		synctest.Wait()
		wantLeaders(t, "at the beginning", []*gocronlock.Elector{first}, true)
		other := client(t, e)
		second := gocronlock.NewElector(election.New(other, "cron"))
		defer second.Close()
		synctest.Wait()
		found, err := other.Contenders(t.Context(), "cron")
		if err != nil || len(found) != 2 {
			t.Fatalf("contenders %+v, %v, want 2", found, err)
		}
		cut := memdriver.AroundSession(found[0].Session)
		e.Partition(cut)
		defer e.Heal(cut)
		for range 10_000 {
			time.Sleep(10 * time.Millisecond) // of virtual time
			l := leads(t, first, second)
			if l[0] && l[1] {
				t.Fatal("both candidates lead")
			}
			if l[1] {
				return
			}
		}
		t.Error("the second candidate does not lead after 100 s")
	})
}

// A candidacy that cannot succeed ends, and IsLeader and Close say why.
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

// A nil job is a mistake in the program, whether this scheduler leads or not.
func TestElectorDoWithoutAFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second, _ := electors(t)
		for _, x := range []*gocronlock.Elector{first, second} {
			if err := x.Do(t.Context(), nil); !errors.Is(err, zklock.ErrMisuse) || errors.Is(err, gocronlock.ErrNotLeader) {
				t.Errorf("%v, want ErrMisuse", err)
			}
		}
	})
}
