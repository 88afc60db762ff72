package zklock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// An operator deletes a waiter's node while two others wait behind it. Neither of the two may take
// the deletion for its turn. The waiter itself is still the next one in the list that it has read.
// It must not get in while one of the others holds.
func TestOwnNodeDeletedWithTwoWaitersBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{0, time.Second} { // how long after the deletion the holder leaves
			e := memdriver.New()
			var cs []*zklock.Client
			for range 4 {
				cs = append(cs, connect(t, e.Connector(), nil))
			}
			l := mustLock(t)(cs[0].Mutex("x").Acquire(t.Context()))
			deleted := acquiring(t, cs[1].Mutex("x"), t.Context())
			third := acquiring(t, cs[2].Mutex("x"), t.Context())
			fourth := acquiring(t, cs[3].Mutex("x"), t.Context())
			queue, err := cs[0].Contenders(t.Context(), "x")
			if err != nil || len(queue) != 4 {
				t.Fatal(queue, err)
			}
			if err := memcontrol.Of(e).Delete("/zklock/x/" + queue[1].Node); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			none(t, "the third, while the first holds,", third)
			none(t, "the fourth, while the first holds,", fourth)
			last := l
			for _, next := range []chan *zklock.Lock{third, fourth, deleted} { // the deleted one has queued again, at the tail
				mustRelease(t, last)
				n := <-next
				if n.Token().Compare(last.Token()) <= 0 {
					t.Errorf("token %v after %v", n.Token(), last.Token())
				}
				time.Sleep(time.Second)
				for which, other := range map[string]chan *zklock.Lock{"the deleted one": deleted, "the third": third, "the fourth": fourth} {
					if other != next {
						none(t, which, other)
					}
				}
				last = n
			}
			mustRelease(t, last)
		}
	})
}

// The only contender ahead of a waiter leaves, and an event reports that to the waiter.
// But the waiter's own node is gone too, and its connection breaks before it can read
// that. The next server lags: it has applied neither deletion, and shows both nodes. The
// waiter must not take the absence of the node ahead on the one connection and the
// presence of its own node on the other for a grant: the contender behind it, whose
// server is up to date, holds by then.
func TestEventThenReconnectToALaggingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3))
		leader := e.Leader()
		lagging := (leader + 1) % 3
		a, c := connect(t, e.Connector(leader), nil), connect(t, e.Connector(leader), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context()))

		var id atomic.Int64
		var armed atomic.Bool
		var once sync.Once
		stale := make(chan error, 1) // result of the waiter's first request after the event, the read of its own node
		hooks := zklock.Hooks{
			Session: func(ev zklock.SessionEvent) { id.Store(ev.ID) },
			Operation: func(ctx context.Context, ev zklock.OperationEvent) (context.Context, func(error)) {
				end := func(error) {}
				if ev.Kind == "watch" && armed.Load() {
					once.Do(func() {
						e.Partition(memdriver.BetweenSession(id.Load(), leader).Reset())
						end = func(err error) { stale <- err }
					})
				}
				return ctx, end
			},
		}
		e.Partition(memdriver.AroundClients(lagging).Reset())
		b := connect(t, e.Connector(leader, lagging), nil, zklock.WithHooks(hooks))
		waiter := acquiring(t, b.Mutex("x"), t.Context())
		time.Sleep(time.Second) // it may have tried the other server first
		e.Heal()
		behind := acquiring(t, c.Mutex("x"), t.Context())
		queue, err := a.Contenders(t.Context(), "x")
		if err != nil || len(queue) != 3 {
			t.Fatal(queue, err)
		}

		memcontrol.Of(e).Lag(lagging, 3*time.Second)
		armed.Store(true)
		if err := memcontrol.Of(e).Delete("/zklock/x/" + queue[1].Node); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		n := <-behind
		if !n.Valid() {
			t.Error("the lock of the contender behind is not valid")
		}
		for range 50 {
			none(t, "the waiter whose node is gone,", waiter)
			time.Sleep(100 * time.Millisecond)
		}
		if err := <-stale; err != nil {
			t.Errorf("the lagging server did not show the deleted node: %v", err)
		}
		if st := b.Stats(); st.Reconnects == 0 || st.SessionsLost != 0 {
			t.Errorf("%+v, want a reconnect and no lost session", st)
		}
		mustRelease(t, n)
		w := <-waiter
		if w.Token().Compare(n.Token()) <= 0 {
			t.Errorf("token %v after %v", w.Token(), n.Token())
		}
		mustRelease(t, w)
	})
}
