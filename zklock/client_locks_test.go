package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// listed returns the names that Locks yields, and fails the test at an error.
func listed(t *testing.T, c *zklock.Client, prefix string) (names []string) {
	t.Helper()
	for l, err := range c.Locks(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, l.Name)
	}
	return names
}

// Locks goes by name in byte order, whatever the znodes are called, and takes the prefix for
// one of the name.
func TestLocksAreInTheOrderOfTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, s := connect(t, e.Connector(), nil), plain(t, e)
		want := []string{" ", "A", "a", "a b", "a%2Fb", "a-b", "a.b", "a/b", "a/b/c", "aa", "b", "zz", "~", "~a", "é", "日本"}
		for i := range want {
			name := want[len(want)-1-i]
			defer mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context())))
		}
		mustRelease(t, mustLock(t)(c.Mutex("not in use").Acquire(t.Context())))
		// Znodes below the root that do not belong to locks: a ledger, other programs' nodes, and names
		// that this library would write in another way.
		for _, other := range []string{"~ledger", "a/b is not allowed", "%61", "%2f", "%", "%zz", "x y"} {
			other = strings.ReplaceAll(other, "/", "")
			if _, err := s.Create(t.Context(), "/zklock/"+other, nil, driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Create(t.Context(), "/zklock/"+other+"/_c_x-__WRIT__0000000000", nil, driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		if got := listed(t, c, ""); !slices.Equal(got, want) {
			t.Errorf("names %q, want %q", got, want)
		}
		for _, prefix := range []string{"a", "a/", "a%", "~", "é", "é"[:1], "none", "a/b/c"} {
			var with []string
			for _, name := range want {
				if strings.HasPrefix(name, prefix) {
					with = append(with, name)
				}
			}
			if got := listed(t, c, prefix); !slices.Equal(got, with) {
				t.Errorf("prefix %q: names %q, want %q", prefix, got, with)
			}
		}
		for l := range c.Locks(t.Context(), "a b") {
			if l.Path != c.Mutex("a b").Path() || len(l.Contenders) != 1 || !l.Contenders[0].Held {
				t.Errorf("%+v", l)
			}
		}
	})
}

// In dialects whose names are paths, a name may be above others.
func TestLocksOfNamesThatArePaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, s := inDialect(t, e.Connector(), "kazoo"), plain(t, e)
		want := []string{"a", "a b", "a-b", "a/b", "a/b/c", "ab/c", "b/c/d/e", "é/x"}
		for _, name := range want {
			defer mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context())))
		}
		for _, path := range []string{"/zklock/~once", "/zklock/~once/x", "/zklock/b/notes"} {
			if _, err := s.Create(t.Context(), path, nil, driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Create(t.Context(), "/zklock/~once/x/1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__lock__", nil, driver.PersistentSequential, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		for _, prefix := range []string{"", "a", "a/", "a/b/", "b/c", "b/c/d/e", "é", "none"} {
			var with []string
			for _, name := range want {
				if strings.HasPrefix(name, prefix) {
					with = append(with, name)
				}
			}
			if got := listed(t, c, prefix); !slices.Equal(got, with) {
				t.Errorf("prefix %q: names %q, want %q", prefix, got, with)
			}
		}
		// With a prefix only the znodes on the way to it are read.
		wantCost(t, "a walk to one name", cost(e, func() { listed(t, c, "b/c/d/") }), memcontrol.Ops{Syncs: 1, Children: 5, Gets: 1})
	})
}

// No dialect takes the register of long waits for a name: Locks does not read it, and no lock can have its
// znode.
func TestRegisterOfWaitsIsNotAName(t *testing.T) {
	for _, dialect := range []string{"", "curator", "zk", "kazoo", "latch"} {
		t.Run(dialect, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				params := map[string]string{}
				if dialect != "" {
					params["dialect"] = dialect
				}
				a, b, other := connect(t, e.Connector(), params), connect(t, e.Connector(), params), connect(t, e.Connector(), params)
				x, y := mustLock(t)(a.Mutex("x").Acquire(t.Context())), mustLock(t)(b.Mutex("y").Acquire(t.Context()))
				waits := nested(t, x, a.Mutex("y"), zklock.WithWait(30*time.Second))
				time.Sleep(5 * time.Second)
				if n := registered(e); n != 1 {
					t.Fatalf("%d waits are registered", n)
				}
				listed(t, other, "") // opens a session
				var got []string
				ops := cost(e, func() { got = listed(t, other, "") })
				if want := []string{"x", "y"}; !slices.Equal(got, want) {
					t.Errorf("names %q, want %q", got, want)
				}
				if ops.Children != 3 {
					t.Errorf("%d lists, want those of the root and of 2 names", ops.Children)
				}
				for _, name := range []string{"%waits", "%waits/x"} {
					_, err := other.Mutex(name).TryAcquire(t.Context())
					if literal := dialect != ""; errors.Is(err, zklock.ErrInvalidName) != literal {
						t.Errorf("the name %q: %v", name, err)
					}
					if strings.Contains(other.Mutex(name).Path(), "/%waits") && !errors.Is(err, zklock.ErrInvalidName) {
						t.Errorf("the name %q has the path %q", name, other.Mutex(name).Path())
					}
				}
				if o := <-waits; !errors.Is(o.err, zklock.ErrNotAcquired) {
					t.Error(o.err)
				}
				mustRelease(t, x)
				mustRelease(t, y)
			})
		})
	}
}

// Locks costs a list of the root, a list for each znode and a read for each contender. It
// has at most 16 requests under way, and none when its loop has ended.
func TestLocksCountsItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const names, most = 100, 16
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		var under, peak atomic.Int64
		hooks := zklock.Hooks{Operation: func(ctx context.Context, o zklock.OperationEvent) (context.Context, func(error)) {
			if o.Kind != "list" {
				return ctx, nil
			}
			if n := under.Add(1); n > peak.Load() {
				peak.Store(n)
			}
			return ctx, func(error) { under.Add(-1) }
		}}
		holder := connect(t, e.Connector(), nil)
		c := connect(t, e.Connector(), nil, zklock.WithHooks(hooks))
		var waiters sync.WaitGroup
		defer waiters.Wait() // after the holder has released all names
		for i := range names {
			name := fmt.Sprintf("%03d", i)
			defer mustRelease(t, mustLock(t)(holder.Mutex(name).Acquire(t.Context())))
			if i%2 == 0 {
				waiters.Go(func() {
					if l, err := c.Mutex(name).Acquire(t.Context()); err == nil {
						mustRelease(t, l)
					}
				})
			}
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		peak.Store(0)
		before := memcontrol.Of(e).Ops()
		began := time.Now()
		if got := listed(t, c, ""); len(got) != names {
			t.Errorf("%d names, want %d", len(got), names)
		}
		took := time.Since(began)
		after := memcontrol.Of(e).Ops()
		if lists, reads := after.Children-before.Children, after.Gets-before.Gets; lists != 1+names || reads != names+names/2 {
			t.Errorf("%d lists and %d reads for %d names with %d contenders", lists, reads, names, names+names/2)
		}
		if n := peak.Load(); n < most/2 || n > most {
			t.Errorf("%d requests at a time, want %d at most, and nearly as many", n, most)
		}
		if alone := time.Duration(2*names+names/2) * 2 * time.Millisecond; took > alone/4 {
			t.Errorf("took %v; one request after the other would take %v", took, alone)
		}
		for range c.Locks(t.Context(), "") {
			break
		}
		if n := under.Load(); n != 0 {
			t.Errorf("%d requests are under way after the loop has ended", n)
		}
	})
}

// An error about one name does not end the sequence; any other error does.
func TestLocksReportsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, s := connect(t, e.Connector(), nil), plain(t, e)
		for _, name := range []string{"a", "c"} {
			defer mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(t.Context())))
		}
		if _, err := s.Create(t.Context(), "/zklock/b", nil, driver.Persistent, driver.OpenACL(driver.PermAll&^driver.PermRead)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for l, err := range c.Locks(t.Context(), "") {
			got = append(got, fmt.Sprintf("%s %t", l.Name, errors.Is(err, zklock.ErrNoAuth)))
		}
		if want := []string{"a false", "b true", "c false"}; !slices.Equal(got, want) {
			t.Errorf("names and refusals: %q, want %q", got, want)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for l, err := range c.Locks(ctx, "") {
			if n++; n == 1 {
				cancel()
			} else if l.Name != "" || !errors.Is(err, context.Canceled) || n > 2 {
				t.Errorf("element %d after the end of the context: %+v, %v", n, l, err)
			}
		}
		missing := openConfig(t, zklock.Config{Connector: e.Connector(), Root: "/nowhere", RequireRoot: true})
		if got := listed(t, missing, ""); got != nil {
			t.Errorf("names below a root that does not exist: %q", got)
		}
		closed, err := zklock.OpenConnector(e.Connector())
		if err != nil {
			t.Fatal(err)
		}
		closed.Close()
		for _, bad := range []*zklock.Client{nil, {}, closed} {
			n := 0
			for l, err := range bad.Locks(t.Context(), "") {
				if n++; err == nil || l.Name != "" {
					t.Errorf("%+v, %v", l, err)
				}
			}
			if n != 1 {
				t.Errorf("%d elements of a client that cannot be used, want one error", n)
			}
		}
	})
}

// A session that ends in the middle costs nothing but a new session: no name is left out.
func TestLocksGoesOnOnAnotherSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		var reader *zklock.Client
		reads := 0
		expire := faultdriver.If("the fiftieth read ends the session", func(op faultdriver.Op) bool {
			if op.Kind == faultdriver.Get && strings.Contains(op.Paths[0], "__WRIT__") {
				if reads++; reads == 50 {
					go e.KillSession(op.Session)
				}
			}
			return false
		}, faultdriver.None())
		holder := connect(t, e.Connector(), nil)
		reader = connect(t, faultdriver.Wrap(e.Connector(), expire), nil)
		want := names(100)
		slices.Sort(want)
		for _, name := range want {
			defer mustRelease(t, mustLock(t)(holder.Mutex(name).Acquire(t.Context())))
		}
		if got := listed(t, reader, ""); !slices.Equal(got, want) || reader.Stats().SessionsLost != 1 {
			t.Errorf("%d names on %d sessions that were lost, want %d names and one session", len(got), reader.Stats().SessionsLost, len(want))
		}
	})
}

// The memory of Locks does not grow with the number of names beyond their list, nor with what
// the loop has passed. It prints how long ten thousand names take.
func TestLocksOfManyNamesTakeLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("ten thousand names take too long for -short")
	}
	const many, long = 10_000, 5_000
	e := memdriver.New()
	t.Cleanup(func() { _ = e.Close() })
	c, s := connect(t, e.Connector(), nil), plain(t, e)
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := driver.OpenACL(driver.PermAll)
	var ops []driver.Op
	flush := func(at int) {
		if len(ops) >= at {
			if _, err := s.Multi(t.Context(), ops); err != nil {
				t.Fatal(err)
			}
			ops = ops[:0]
		}
	}
	for i := range many {
		path := fmt.Sprintf("/zklock/orders%%2F%05d", i)
		ops = append(ops, driver.CreateOp(path, []byte("zklock"), driver.Persistent, open))
		contenders := 1
		if i == many/2 {
			contenders = long
		}
		for n := range contenders {
			flush(500)
			ops = append(ops, driver.CreateOp(fmt.Sprintf("%s/_c_1b9d6bcd-bbfd-4b2d-9b5d-%012x-__WRIT__", path, n), []byte(`{"host":"web-1","pid":1,"mode":"exclusive","since":1}`), driver.EphemeralSequential, open))
		}
	}
	flush(1)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := heap(), uint64(0)
	began := time.Now()
	n, contenders := 0, 0
	for l, err := range c.Locks(t.Context(), "orders/") {
		if err != nil {
			t.Fatal(err)
		}
		if n%1000 == 0 {
			most = max(most, heap()-min(before, heap()))
		}
		n++
		contenders += len(l.Contenders)
	}
	t.Logf("%d names with %d contenders in %v, with at most %d KiB of memory", n, contenders, time.Since(began).Round(time.Millisecond), most>>10)
	if n != many || contenders != many-1+long {
		t.Errorf("%d names with %d contenders, want %d with %d", n, contenders, many, many-1+long)
	}
	if most > 16<<20 {
		t.Errorf("the walk took %d KiB of memory, want less than 16 MiB", most>>10)
	}
}

// A name whose queue is not answered does not hold up the names in front of it.
func TestLocksYieldsBeforeASlowName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a := connect(t, e.Connector(), nil)
		for i := range 16 {
			mustLock(t)(a.Mutex(fmt.Sprintf("n%02d", i)).Acquire(t.Context()))
		}
		c := connect(t, faultdriver.Wrap(e.Connector(), faultdriver.Path("/zklock/n15", faultdriver.HangReply())), nil)
		began := time.Now()
		for info, err := range c.Locks(t.Context(), "") {
			if d := time.Since(began); info.Name != "n00" || err != nil || d > time.Second {
				t.Errorf("%q, %v after %v, want n00 at once", info.Name, err, d)
			}
			break
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("the loop has ended after %v, want that it waits for no request", d)
		}
	})
}
