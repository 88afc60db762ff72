package zklock_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// An operator deletes a waiter's node. Of the two behind it neither may take
// that for its turn, nor may the waiter, whose list still has it as the next one,
// get in beside the one who does.
func TestOwnNodeDeletedWithTwoWaitersBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{0, time.Second} { // the holder leaves
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
			if err := e.Delete("/zklock/x/" + queue[1].Node); err != nil {
				t.Fatal(err)
			}
			time.Sleep(after)
			none(t, "the third, beside the holder", third)
			none(t, "the fourth, beside the holder", fourth)
			last := l
			for _, next := range []chan *zklock.Lock{third, fourth, deleted} { // who queues anew is the last
				mustRelease(t, last)
				n := <-next
				if n.Token().Compare(last.Token()) <= 0 {
					t.Errorf("token %v after %v", n.Token(), last.Token())
				}
				time.Sleep(time.Second)
				for who, other := range map[string]chan *zklock.Lock{"the deleted one": deleted, "the third": third, "the fourth": fourth} {
					if other != next {
						none(t, who, other)
					}
				}
				last = n
			}
			mustRelease(t, last)
		}
	})
}

// The event says that the only one ahead has left, and it is true. But the
// waiter's own node is gone as well, and before it can look its connection breaks;
// the next server has heard of neither and shows both. Absence here and presence
// there make no grant: it would be beside the one behind, who has both from a
// server that is up to date.
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
		stale := make(chan error, 1) // of the waiter's first look after the event, at its own node
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

		e.Lag(lagging, 3*time.Second)
		armed.Store(true)
		if err := e.Delete("/zklock/x/" + queue[1].Node); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, l)
		n := <-behind
		if !n.Valid() {
			t.Error("the one behind does not hold")
		}
		for range 50 {
			none(t, "the waiter whose node is gone", waiter)
			time.Sleep(100 * time.Millisecond)
		}
		if err := <-stale; err != nil {
			t.Errorf("the lagging server did not show the node that is gone: %v", err)
		}
		if st := b.Stats(); st.Reconnects == 0 || st.SessionsLost != 0 {
			t.Errorf("%+v", st)
		}
		mustRelease(t, n)
		w := <-waiter
		if w.Token().Compare(n.Token()) <= 0 {
			t.Errorf("token %v after %v", w.Token(), n.Token())
		}
		mustRelease(t, w)
	})
}
