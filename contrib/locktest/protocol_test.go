package locktest_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest"
	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// TestLossBeforeItsGrant: a worker reports the loss of a hold before the grant. Locktest gives the lock back, and the
// history has the loss after the grant, so that the judge sees the end of the hold.
func TestLossBeforeItsGrant(t *testing.T) {
	t.Parallel()
	c := toy(t, earlyLoss, long)
	c.Workers, c.Clients, c.Names, c.Grants, c.Settle = 1, 1, []string{"a"}, 10, 3*time.Second // a process works, and another one probes
	f, events := judged(t, c)
	if !f.Passed() || f.Losses != 2 || f.Grants < c.Grants {
		t.Errorf("%d grants, %d losses, stuck: %q, want two losses and nothing wrong", f.Grants, f.Losses, f.Stuck)
	}
	at := slices.IndexFunc(events, func(e history.Event) bool { return e.Kind == history.Lost })
	if at < 0 {
		t.Fatal("the history has no loss")
	}
	var kinds []history.Kind
	for _, e := range events {
		if e.ID == events[at].ID {
			kinds = append(kinds, e.Kind)
		}
	}
	order := []history.Kind{history.Acquire, history.Granted, history.Lost, history.Release, history.Released}
	got := slices.DeleteFunc(slices.Clone(kinds), func(k history.Kind) bool { return !slices.Contains(order, k) })
	if !slices.Equal(got, order) || slices.Contains(kinds, history.Write) {
		t.Errorf("the acquisition has the events %q, want %q in this order, and no write", kinds, order)
	}
	for _, h := range judge.Holds(events) {
		if h.ID == events[at].ID && (h.Ended != events[at].At || h.Sure != 0) {
			t.Errorf("the hold %+v, want its end at %d and no sure part", h, events[at].At)
		}
	}
}

// TestManyLosses: a worker may report a loss as often as it likes. The client still gets an answer to its check, and the
// history has each loss once.
func TestManyLosses(t *testing.T) {
	t.Parallel()
	c := toy(t, manyLosses, long)
	c.Workers, c.Clients, c.Grants, c.Hold = 1, 1, 20, 50*time.Millisecond
	f, events := judged(t, c)
	if !f.Passed() || f.Losses != f.Grants {
		t.Errorf("%d grants and %d losses, passed: %v, want a loss for each", f.Grants, f.Losses, f.Passed())
	}
	if slices.ContainsFunc(events, func(e history.Event) bool { return e.Kind == history.Write }) {
		t.Error("a client has written after a loss")
	}
}

// TestMistakesInTheProtocol: a worker that breaks the rules ends the run by an error that names the mistake.
func TestMistakesInTheProtocol(t *testing.T) {
	t.Parallel()
	for bug, want := range map[string]string{
		strayGrant: "worker 1: it granted acquisition 1048576, which does not wait",
		grantTwice: "worker 1: it granted acquisition 1, which does not wait",
		earlyHeld:  `worker 1: it answered acquisition 1 with "held" before it granted it`,
		readyTwice: "worker 1: it said twice that it is ready",
	} {
		t.Run(bug, func(t *testing.T) {
			t.Parallel()
			c := toy(t, bug, long)
			c.Workers, c.Clients, c.Grants, c.Settle = 1, 1, 10, 3*time.Second
			if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want an error with %q", err, want)
			}
			c = toy(t, bug, long)
			c.Kills, c.Beat, c.Names = 1, time.Millisecond, []string{"a"}
			if _, err := locktest.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("with kills of holders: %v, want an error with %q", err, want)
			}
		})
	}
}
