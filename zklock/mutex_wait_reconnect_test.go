package zklock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A waiter's list has shown the holder's node. Before the waiter watches that node its connection is lost, and the
// next server lags: it has not applied the node's creation. The waiter
// would take that for the node's deletion. It relies on driver.Session: no reply is older than one before it.
func TestWaiterIsShownNothingFromBeforeItsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3))
		leader := e.Leader()
		lagging := (leader + 1) % 3
		var session, watches atomic.Int64
		hooks := zklock.Hooks{
			Session: func(ev zklock.SessionEvent) { session.Store(ev.ID) },
			Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
				if ev.Kind == "watch" {
					switch watches.Add(1) {
					case 1:
						e.Partition(memdriver.BetweenSession(session.Load(), leader).Reset())
					case 2: // the read of its own node, if the holder's seems to be gone
						memcontrol.Of(e).Lag(lagging, 0)
					}
				}
				return ctx, nil
			},
		}
		e.Partition(memdriver.AroundClients(lagging).Reset())
		holder, waiter := connect(t, e.Connector(leader), nil), connect(t, e.Connector(leader, lagging), nil, zklock.WithHooks(hooks))
		mustRelease(t, mustLock(t)(waiter.Mutex("first").Acquire(t.Context())))
		time.Sleep(time.Second)
		e.Heal()

		memcontrol.Of(e).Lag(lagging, 3*time.Second)
		held := mustLock(t)(holder.Mutex("x").Acquire(t.Context()))
		waits := acquiring(t, waiter.Mutex("x"), t.Context())
		for range 60 {
			none(t, "the waiter, while another client holds,", waits)
			time.Sleep(100 * time.Millisecond)
		}
		if st := waiter.Stats(); watches.Load() == 0 || st.Reconnects == 0 || st.SessionsLost != 0 {
			t.Errorf("%d watches, %+v; want a reconnect and no lost session", watches.Load(), st)
		}
		mustRelease(t, held)
		mustRelease(t, <-waits)
	})
}
