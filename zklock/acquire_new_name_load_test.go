package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Many callers want fresh names, and give up while 64 transactions are under way. The client
// drops the other transactions: a later caller does not wait for them.
func TestFreshNamesOfCallersThatGaveUpAreNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count, limit = 1000, 64
		e := memdriver.New(memdriver.WithLatency(50 * time.Millisecond))
		m := &makers{Connector: e.Connector()}
		c := connect(t, m, nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, name := range names(count) {
			wg.Go(func() {
				if _, err := c.Mutex(name).Acquire(t.Context(), zklock.WithWait(80*time.Millisecond)); !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("acquire: %v, want ErrNotAcquired", err)
				}
			})
		}
		wg.Wait()
		mustRelease(t, mustLock(t)(c.Mutex("next").Acquire(t.Context(), zklock.WithWait(time.Minute))))
		if n := m.multis.Load(); n != limit+1 && n != limit { // one may be dropped while it takes its turn
			t.Errorf("%d transactions with a container, want %d of callers that gave up, of which one may be dropped while it takes its turn, and one more", n, limit)
		}
		time.Sleep(time.Minute)
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes left", n)
		}
	})
}

// A caller gives up after a transaction that was certainly not sent. The client does not look
// for its nodes.
func TestFreshNameThatWasNotSentIsNotLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		m := &makers{Connector: e.Connector(), multi: func(driver.Session, context.Context, []driver.Op) ([]driver.OpResult, error) {
			return nil, driver.ErrNotSent
		}}
		c := connect(t, m, nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantCost(t, "a fresh name that was not sent", cost(e, func() {
			if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(20*time.Millisecond)); !errors.Is(err, zklock.ErrNotAcquired) {
				t.Errorf("acquire: %v, want ErrNotAcquired", err)
			}
		}), memcontrol.Ops{})
		if m.multis.Load() == 0 {
			t.Error("no transaction was tried")
		}
	})
}

// A client has used fresh names, so they may share transactions. Then it wants many names at
// once that exist already. One transaction of each group is refused because of them, and the
// other members of the group do not wait for more.
func TestFreshNamesThatExistDoNotHoldUpTheirGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 300
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		var shared atomic.Int64 // refused transactions of several members
		m := &makers{Connector: e.Connector(), multi: func(s driver.Session, ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
			results, err := s.Multi(ctx, ops)
			if err != nil && len(ops) > 3 {
				shared.Add(1)
			}
			return results, err
		}}
		c, other := connect(t, m, nil), connect(t, e.Connector(), nil)
		var wg sync.WaitGroup
		use := func(c *zklock.Client, name string) {
			wg.Go(func() { mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context()))) })
		}
		for i := range count {
			use(other, fmt.Sprint("n", i))
		}
		held := mustLock(t)(c.Mutex("held").Acquire(t.Context()))
		for i := range 16 {
			use(c, fmt.Sprint("fresh", i))
		}
		wg.Wait()
		for i := range count {
			use(c, fmt.Sprint("n", i))
		}
		synctest.Wait() // two transactions are under way, and the rest waits
		mustRelease(t, held)
		wg.Wait()
		if n := shared.Load(); n == 0 || n > 4 {
			t.Errorf("%d shared transactions were refused, want one for each group that was sent, at most 4", n)
		}
	})
}

// Of many names that are acquired together, another client has created all, or some. One
// transaction is refused, and then the client reads which of the others exist.
func TestFreshNamesThatExistTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		var l *zklock.Lock
		all := func(c *zklock.Client, names ...string) func() {
			var list []zklock.Acquirer
			for _, name := range names {
				list = append(list, c.Mutex(name))
			}
			return func() { l = mustLock(t)(zklock.All(list...).Acquire(t.Context())) }
		}
		many := names(100)
		all(other, many...)()
		mustRelease(t, l)
		wantCost(t, "a hundred names that exist", cost(e, all(c, many...)), memcontrol.Ops{Multis: 2, MultiOps: 300 + 200, Gets: 100})
		mustRelease(t, l)
		all(other, "a", "c", "e")()
		mustRelease(t, l)
		wantCost(t, "five names, of which every second exists", cost(e, all(c, "a", "b", "c", "d", "e")), memcontrol.Ops{Multis: 2, MultiOps: 15 + 12, Gets: 5})
		mustRelease(t, l)
	})
}

// Several goroutines of a client use a fresh name at the same time, each with a node of its
// own. One of them has created the znode, and the client removes it when it is idle, whatever
// the others have found out.
func TestFreshNameOfSeveralGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithReapInterval(24*time.Hour), memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), nil)
		var wg sync.WaitGroup
		var got []zklock.Token
		var mu sync.Mutex
		for range 5 {
			wg.Go(func() {
				l := mustLock(t)(c.Semaphore("s", 5).Acquire(t.Context()))
				mu.Lock()
				got = append(got, l.Token())
				mu.Unlock()
				time.Sleep(time.Second)
				mustRelease(t, l)
			})
		}
		wg.Wait()
		slices.SortFunc(got, zklock.Token.Compare)
		if n := len(slices.Compact(got)); n != 5 {
			t.Errorf("%d different tokens of five holders", n)
		}
		time.Sleep(time.Minute)
		if dump := e.Dump(); nodes(e) != 0 || strings.Contains(dump, "s container") {
			t.Errorf("left behind:\n%s", dump)
		}
	})
}

// A connection is lost while the first transactions for fresh names are under way, so all of
// them have an unknown outcome. Later names are one transaction again.
func TestFreshNamesAfterAnEarlyCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 20
		e := memdriver.New(memdriver.WithLatency(5 * time.Millisecond))
		m := &makers{Connector: e.Connector()}
		c := connect(t, m, nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, name := range names(count) {
			wg.Go(func() { mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context()))) })
		}
		synctest.Wait()
		e.KillConnection(e.Sessions()[0])
		wg.Wait()
		if n := m.multis.Load(); n != count {
			t.Errorf("%d transactions with a container for %d names", n, count)
		}
		mustRelease(t, mustLock(t)(c.Mutex("later").Acquire(t.Context())))
		if n := m.multis.Load(); n != count+1 {
			t.Errorf("%d transactions with a container after a later name, want %d", n, count+1)
		}
	})
}

// A client wants a thousand fresh names at once. Each of the first 64 names has a transaction of
// its own. When eight of these have been applied, the other names share a few transactions. Names
// whose transactions have begun before that do not.
func TestManyFreshNamesAtOnceShareTransactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count, limit = 1000, 64
		e := memdriver.New(memdriver.WithLatency(50 * time.Millisecond))
		m := &makers{Connector: e.Connector()}
		c := connect(t, m, nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for _, name := range names(count) {
			wg.Go(func() { mustLock(t)(c.Mutex(name).Acquire(t.Context())) })
		}
		wg.Wait()
		if n := m.multis.Load(); n <= limit || n > 3*limit {
			t.Errorf("%d transactions for %d fresh names, want %d to %d", n, count, limit+1, 3*limit)
		}
	})
}

// However many new names are acquired at once, the transactions that create their znodes do
// not all go ahead of a heartbeat or a release. Another client has used the names, so each
// transaction is refused, and none shares a group.
func TestNewNamesDoNotCrowdOutHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, groups = 64, 2
		names := corekit.Crowd(1000)
		var mu sync.Mutex
		now, most, all := 0, 0, 0
		hooks := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			if e.Kind != "enqueue" && e.Kind != "commit" && e.Kind != "release" {
				return ctx, nil
			}
			mu.Lock()
			defer mu.Unlock()
			now, all = now+1, all+1
			most = max(most, now)
			return ctx, func(error) {
				mu.Lock()
				defer mu.Unlock()
				now--
			}
		}}
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		c, other := connect(t, e.Connector(), nil, zklock.WithHooks(hooks)), connect(t, e.Connector(), nil)
		for _, c := range []*zklock.Client{other, c} {
			var wg sync.WaitGroup
			for i := range names {
				wg.Go(func() {
					l, err := c.Mutex("n" + strconv.Itoa(i)).Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mustRelease(t, l)
				})
			}
			wg.Wait()
		}
		if all <= names || most < limit || most > limit+groups {
			t.Errorf("%d transactions, at most %d at once; want more than %d, and %d to %d", all, most, names, limit, limit+groups)
		}
		if st := c.Stats(); st.SessionsLost != 0 {
			t.Errorf("%+v, want no lost session", st)
		}
	})
}
