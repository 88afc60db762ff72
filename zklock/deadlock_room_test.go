package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// crowded has one session with little room.
var crowded = map[string]string{"jute_maxbuffer": "65536", "pool_max_sessions": "1"}

// crowd acquires locks until the client's session has room for no other one. first is the number of the first name.
func crowd(t *testing.T, c *zklock.Client, first int) (locks []*zklock.Lock) {
	t.Helper()
	for _, name := range []func(int) string{wide, func(i int) string { return fmt.Sprint("n", i) }} {
		for i := first; ; i++ {
			l, err := c.Mutex(name(i)).Acquire(t.Context())
			if errors.Is(err, zklock.ErrTooManyWaiters) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			locks = append(locks, l)
		}
	}
	return locks
}

// A session that has no room for queue nodes has some for registrations, so that a circle of waits is found.
func TestDeadlockInFullSessions(t *testing.T) {
	for _, one := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			a := connect(t, e.Connector(), crowded)
			b := a
			if !one {
				b = connect(t, e.Connector(), crowded)
			}
			x, y := apart(t, a, b)
			waits := []<-chan outcome{nested(t, x, a.Mutex("y")), nested(t, y, b.Mutex("x"))}
			crowd(t, a, 0)
			crowd(t, b, 1000)
			wantVictims(t, settle(t, e, []*zklock.Lock{x, y}, waits), 1)
		})
	}
}

// A wait that no session has room to register is in no register. It is counted, and its circle is found as soon as there
// is room.
func TestDeadlockWithoutRoomForARegistration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), crowded), connect(t, e.Connector(), nil)
		x, y := apart(t, a, b)
		mustLock(t)(b.Mutex("z").Acquire(t.Context()))
		const others = 30
		for range others { // their registrations are before that of the circle
			nested(t, x, a.Mutex("z"), zklock.WithWait(40*time.Second))
		}
		first := nested(t, y, b.Mutex("x"))
		time.Sleep(100 * time.Millisecond)
		second := nested(t, x, a.Mutex("y"))
		locks := crowd(t, a, 0)
		time.Sleep(20 * time.Second)
		for i, w := range []<-chan outcome{first, second} {
			stillWaits(t, w, fmt.Sprint("wait ", i, " of a circle that is not registered"))
		}
		in, unknown := registered(e), a.Stats().DeadlocksUnknown
		if unknown == 0 || in+int(unknown) != others+2 {
			t.Errorf("%d waits are registered and %d counted as unknown, want some of each, and %d together", in, unknown, others+2)
		}
		for _, size := range closing(t, e) {
			if size > roomOf64K+1<<16/32 {
				t.Errorf("a session has %d bytes of paths, want no more than %d", size, roomOf64K+1<<16/32)
			}
		}
		for _, l := range locks[:4] {
			mustRelease(t, l)
		}
		wantVictims(t, settle(t, e, []*zklock.Lock{y, x}, []<-chan outcome{first, second}), 1)
	})
}

// A registration that the servers do not delete counts in the room of its session for as long as it exists.
func TestRegistrationThatStaysCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var refused atomic.Bool
		stay := onRegister(faultdriver.If("refused", func(op faultdriver.Op) bool {
			return refused.Load() && (op.Kind == faultdriver.Delete || op.Kind == faultdriver.Multi)
		}, faultdriver.Fail(driver.ErrNoAuth)))
		a, b := connect(t, faultdriver.Wrap(e.Connector(), stay), crowded, zklock.WithLogger(slog.New(slog.DiscardHandler))), connect(t, e.Connector(), nil)
		x, _ := apart(t, a, b)
		const waits = 20
		var ended []<-chan outcome
		for range waits {
			ended = append(ended, nested(t, x, a.Mutex("y"), zklock.WithWait(5*time.Second)))
		}
		time.Sleep(4 * time.Second)
		refused.Store(true)
		for _, w := range ended {
			if o := <-w; !errors.Is(o.err, zklock.ErrNotAcquired) {
				t.Fatal(o.err)
			}
		}
		time.Sleep(3 * time.Minute)
		if n := registered(e); n != waits {
			t.Fatalf("%d waits are registered, want %d", n, waits)
		}
		crowd(t, a, 0)
		for _, size := range closing(t, e) {
			if size > roomOf64K {
				t.Errorf("a session has %d bytes of paths, want no more than %d", size, roomOf64K)
			}
		}
	})
}

// The transaction that ends a wait of a long circle has no room for all of its nodes and registrations on servers with a
// low limit. The circle ends nevertheless, by one wait, and no request is larger than they read.
func TestDeadlockThatIsLargerThanATransaction(t *testing.T) {
	for _, c := range []struct {
		buffer string
		name   func(int) string
	}{
		{"65536", wide}, // two nodes of a wait have 3,300 bytes
		{"4096", func(i int) string { return fmt.Sprint("n", i) }}, // the registrations alone have more
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithLatency(time.Millisecond))
			weighs := &scale{Connector: e.Connector()}
			var clients []*zklock.Client
			for range 3 {
				clients = append(clients, connect(t, weighs, map[string]string{"jute_maxbuffer": c.buffer}))
			}
			const members = 30
			var held []*zklock.Lock
			for i := range members {
				held = append(held, mustLock(t)(clients[i%3].Mutex(c.name(i)).Acquire(t.Context())))
			}
			var waits []<-chan outcome
			for i := range members {
				waits = append(waits, nested(t, held[i], clients[i%3].Mutex(c.name((i+1)%members))))
			}
			wantVictims(t, settle(t, e, held, waits), 1)
			if limit, _ := strconv.Atoi(c.buffer); slices.Max(weighs.sizes) > limit {
				t.Errorf("a transaction had %d bytes, want no more than %s", slices.Max(weighs.sizes), c.buffer)
			}
			for _, c := range clients {
				if n := c.Stats().DeadlocksUnknown; n > 0 {
					t.Errorf("%d waits are not known to be in no circle", n)
				}
			}
		})
	}
}

// A registration that the servers do not read concerns its own wait only: the client registers others as before.
func TestRegistrationThatIsTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), map[string]string{"jute_maxbuffer": "8192"}), connect(t, e.Connector(), nil)
		x, y := apart(t, a, b)
		ctx := t.Context()
		for i := range 4 {
			var end context.CancelFunc
			ctx, end = mustLock(t)(a.Mutex(wide(i)).Acquire(ctx)).Context(ctx)
			defer end()
		}
		theirs := mustLock(t)(b.Mutex("z").Acquire(t.Context()))
		large := nestedIn(ctx, a.Mutex("z"))
		time.Sleep(3 * time.Second)
		if n, in := a.Stats().DeadlocksUnknown, registered(e); n != 1 || in != 0 {
			t.Errorf("%d waits are counted as unknown and %d are registered, want one and none", n, in)
		}
		waits := []<-chan outcome{nested(t, x, a.Mutex("y")), nested(t, y, b.Mutex("x"))}
		wantVictims(t, settle(t, e, []*zklock.Lock{x, y}, waits), 1)
		mustRelease(t, theirs)
		granted(t, <-large)
	})
}
