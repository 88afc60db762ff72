package contention_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/contrib/contention"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// lead stands for election until the client is closed.
func lead(c *zklock.Client) {
	_ = election.New(c, "reminders", election.WithLogger(nil)).Run(context.Background(), func(ctx context.Context, _ *election.Term) error {
		<-ctx.Done()
		return nil
	})
}

// An election in which one candidate leads and another stands by hides no contention: neither is in the
// profiles.
func TestCandidaciesAreLeftOut(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		first, second := join(t, e, "web-1", contention.WithHolderLabels()), join(t, e, "web-2", contention.WithHolderLabels())
		go lead(first.Client)
		synctest.Wait()
		go lead(second.Client)
		go pay(first.Client, "orders/42", 71*time.Second, zklock.WithLabel("POST /pay"))
		synctest.Wait()
		go pay(second.Client, "orders/42", 0)
		time.Sleep(84 * time.Minute)
		if got := text(t, second.Handler(), "?debug=1"); !strings.Contains(got, "1m11s in 1 wait: lock orders/*") || strings.Contains(got, "reminders") {
			t.Errorf("waits:\n%s", got)
		}
		if got := text(t, first.HeldHandler(), "?debug=1"); !strings.HasPrefix(got, "0 locks held") {
			t.Errorf("held:\n%s", got)
		}
	})
}

// With the option, both are in the profiles.
func TestCandidaciesThatAreAskedFor(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		first, second := join(t, e, "web-1", contention.WithCandidacies()), join(t, e, "web-2", contention.WithCandidacies())
		go lead(first.Client)
		synctest.Wait()
		go lead(second.Client)
		time.Sleep(time.Hour)
		want(t, parse(t, second.Handler(), ""), row{"held by web; lock reminders; lead", [2]int64{1, int64(time.Hour)}})
		want(t, parse(t, first.HeldHandler(), ""), row{"lock reminders; lead", [2]int64{1, int64(time.Hour)}})
	})
}
