package inspect_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/inspect"
)

// stand stands for election until the test ends.
func (w *world) stand(c *zklock.Client, name string) {
	w.Helper()
	e := election.New(c, name, election.WithLogger(nil))
	go func() {
		_ = e.Run(w.Context(), func(ctx context.Context, _ *election.Term) error { <-ctx.Done(); return nil })
	}()
}

// An election in which nothing is wrong is neither the longest wait nor what keeps a process from
// moving. A real wait is, though it is shorter.
func TestIdleElectionIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.stand(w.web, "reminders")
		synctest.Wait()
		w.stand(w.jobs, "reminders")
		<-w.waiting
		time.Sleep(84 * time.Minute)
		h := inspect.Handler(w.web)
		head := func() string {
			line, _, _ := strings.Cut(get(t, h, "/?format=text").Body.String(), "\n")
			return line
		}
		if got, want := head(), "1 name, 0 waiters, 1 candidate"; got != want {
			t.Errorf("the head line of an idle election is %q, want %q", got, want)
		}
		// The candidate's process holds a lock for which another one waits.
		w.hold(w.jobs.Mutex("orders/42"), "refund")
		w.wait(w.web.Mutex("orders/42"), "POST /pay")
		time.Sleep(time.Minute)
		if got, want := head(), `2 names, 1 waiter, 1 candidate, longest wait 1m0s: orders/42, held by jobs-1/7 "refund", which asked 1m0s ago`; got != want {
			t.Errorf("the head line is\n%q, want\n%q", got, want)
		}
	})
}
