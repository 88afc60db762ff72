package zklock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Many clients lose their sessions in an outage. They do not all open new ones at the same
// moment.
func TestLostSessionsAreReplacedAtDifferentMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		const clients = 50
		var all []*zklock.Client
		opened := make(chan time.Time, 2*clients)
		for range clients {
			c := connect(t, e.Connector(), nil, zklock.WithHooks(zklock.Hooks{Session: func(e zklock.SessionEvent) {
				if e.State == driver.Connected && e.Lease == 0 {
					opened <- time.Now()
				}
			}}))
			mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
			all = append(all, c)
		}
		synctest.Wait()
		for range clients {
			<-opened
		}
		e.ExpireAll()
		synctest.Wait()
		for i, c := range all {
			got := acquiring(t, c.Mutex(names(clients)[i]), t.Context())
			defer func() { mustRelease(t, <-got) }()
		}
		time.Sleep(time.Second)
		moments := map[time.Time]int{}
		for range clients {
			moments[<-opened]++
		}
		if len(moments) < clients/2 {
			t.Errorf("%d clients opened new sessions at only %d different moments", clients, len(moments))
		}
	})
}

// Clients that acquired their locks at the same moment do not go on sending their
// heartbeats at the same moment.
func TestHeartbeatsGetOutOfStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		const clients = 50
		var mu sync.Mutex
		var beats [clients][]time.Time
		for i := range clients {
			c := connect(t, e.Connector(), nil, zklock.WithHooks(zklock.Hooks{Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
				if ev.Kind == "heartbeat" {
					mu.Lock()
					defer mu.Unlock()
					beats[i] = append(beats[i], time.Now())
				}
				return ctx, nil
			}}))
			l := mustLock(t)(c.Mutex(names(clients)[i]).Acquire(t.Context()))
			defer func() { mustRelease(t, l) }()
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		moments := map[time.Time]bool{}
		for i, all := range beats {
			if len(all) < 20 || len(all) > 33 {
				t.Fatalf("client %d sent %d heartbeats in a minute, want 20 to 33", i, len(all))
			}
			moments[all[len(all)-1]] = true
		}
		if len(moments) < clients/2 {
			t.Errorf("the last heartbeats of %d clients came at only %d different moments", clients, len(moments))
		}
	})
}
