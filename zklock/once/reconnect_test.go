package once_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// A process waits while another one runs a slot. It loses its connection between its grant and the read of the
// ledger, and the next server lags: it has not applied the other's write of the ledger. The slot does not run again,
// whether the grant relied on a reply, which the next server must not fall behind, or on an event, which it may.
func TestLedgerIsNotReadBeforeTheGrant(t *testing.T) {
	for how, wait := range map[string]time.Duration{"reply": 0, "event": time.Second} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3))
				leader := e.Leader()
				lagging := (leader + 1) % 3
				var session atomic.Int64
				var armed, cut atomic.Bool
				hooks := zklock.Hooks{
					Session: func(ev zklock.SessionEvent) { session.Store(ev.ID) },
					Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
						if ev.Kind == "read" && armed.Load() && !cut.Swap(true) {
							e.Partition(memdriver.BetweenSession(session.Load(), leader).Reset())
						}
						return ctx, nil
					},
				}
				e.Partition(memdriver.AroundClients(lagging).Reset())
				first, second := connect(t, e.Connector(leader)), connectWith(t, e.Connector(leader, lagging), hooks)
				do(t, second, "x", "1", nil, true)
				e.Heal()

				began, runs, done := make(chan bool), make(chan bool), make(chan bool, 2)
				go func() {
					_, err := once.Do(t.Context(), first, "x", "2", func(context.Context) error { close(began); <-runs; return nil })
					done <- err == nil
				}()
				<-began
				go func() {
					ran, err := once.Do(t.Context(), second, "x", "2", func(context.Context) error { return nil })
					done <- !ran && err == nil
				}()
				synctest.Wait()
				time.Sleep(wait)
				memcontrol.Of(e).Lag(lagging, 3*time.Second)
				armed.Store(true)
				close(runs)
				if one, other := <-done, <-done; !one || !other {
					t.Error("the slot has run twice, or a call has failed")
				}
				if st := second.Stats(); !cut.Load() || st.Reconnects == 0 || st.SessionsLost != 0 {
					t.Errorf("%+v, want a reconnect and no lost session", st)
				}
				if !strings.Contains(e.Dump(), "~x") {
					t.Error("there is no ledger")
				}
			})
		})
	}
}
