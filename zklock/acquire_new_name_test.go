package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// makers is a connector whose sessions pass each transaction that creates a container to
// multi, and each create of a single container to create; nil changes nothing. It counts
// both.
type makers struct {
	driver.Connector
	multi  func(s driver.Session, ctx context.Context, ops []driver.Op) ([]driver.OpResult, error)
	create error

	multis, creates atomic.Int64
}

func (m *makers) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := m.Connector.Connect(ctx, timeout)
	if err != nil {
		return nil, err
	}
	return &maker{s, m}, nil
}

type maker struct {
	driver.Session
	of *makers
}

func (s *maker) Create(ctx context.Context, path string, data []byte, mode driver.Mode, acl []driver.ACL) (string, error) {
	if mode == driver.Container {
		s.of.creates.Add(1)
		if s.of.create != nil {
			return "", s.of.create
		}
	}
	return s.Session.Create(ctx, path, data, mode, acl)
}

func isContainer(op driver.Op) bool { return op.Mode == driver.Container }

func (s *maker) Multi(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	if slices.ContainsFunc(ops, isContainer) {
		s.of.multis.Add(1)
		if s.of.multi != nil {
			return s.of.multi(s.Session, ctx, ops)
		}
	}
	return s.Session.Multi(ctx, ops)
}

// refuses returns a function for makers.multi: the server refuses the container.
func refuses(err error) func(driver.Session, context.Context, []driver.Op) ([]driver.OpResult, error) {
	return func(_ driver.Session, _ context.Context, ops []driver.Op) ([]driver.OpResult, error) {
		results := make([]driver.OpResult, len(ops))
		for i := range results {
			results[i].Err = driver.ErrRolledBack
		}
		results[slices.IndexFunc(ops, isContainer)].Err = err
		return results, err
	}
}

// The first acquisition of a name that no client uses is one request. If the znode exists,
// that is as many requests as if the client had tried to create only the znode.
func TestFreshNameIsOneTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, other := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		for _, client := range []*zklock.Client{c, other} {
			if err := client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var l *zklock.Lock
		acquire := func(a zklock.Acquirer) func() {
			return func() { l = mustLock(t)(a.Acquire(t.Context())) }
		}
		release := func() { mustRelease(t, l) }
		all := func(c *zklock.Client, names ...string) zklock.Acquirer {
			var list []zklock.Acquirer
			for _, name := range names {
				list = append(list, c.Mutex(name))
			}
			return zklock.All(list...)
		}
		one := memcontrol.Ops{Multis: 1, MultiOps: 3}
		wantCost(t, "a fresh name", cost(e, acquire(c.Mutex("a"))), one)
		if want := "version 1 \"zklock\""; !strings.Contains(e.Dump(), want) || !strings.Contains(e.Dump(), "a container") {
			t.Errorf("want a container with %s:\n%s", want, e.Dump())
		}
		wantCost(t, "its release", cost(e, release), memcontrol.Ops{Multis: 1, MultiOps: 1})
		wantCost(t, "its second use", cost(e, acquire(c.Mutex("a"))), memcontrol.Ops{Multis: 1, MultiOps: 2})
		release()
		wantCost(t, "a name that exists", cost(e, acquire(other.Mutex("a"))), memcontrol.Ops{Multis: 2, MultiOps: 5, Gets: 1})
		release()
		wantCost(t, "four fresh names", cost(e, acquire(all(c, "w", "x", "y", "z"))), memcontrol.Ops{Multis: 1, MultiOps: 12})
		release()
		wantCost(t, "four names, of which two exist", cost(e, acquire(all(other, "u", "w", "v", "x"))), memcontrol.Ops{Multis: 2, MultiOps: 12 + 10, Gets: 2})
		release()
		wantCost(t, "a try of a fresh name", cost(e, func() { l = mustLock(t)(c.Mutex("b").TryAcquire(t.Context())) }), memcontrol.Ops{Multis: 1, MultiOps: 3, Children: 1})
		release()
		if err := memcontrol.Of(e).Delete("/zklock/b"); err != nil { // as the server does with an idle container
			t.Fatal(err)
		}
		wantCost(t, "a name that was removed", cost(e, acquire(c.Mutex("b"))), memcontrol.Ops{Multis: 2, MultiOps: 5})
		release()
	})
}

// A driver or server may not be able to create a container in a transaction, or may not
// allow it. The client tries once on a session, and then creates each znode with a
// request of its own.
func TestFreshNamesWithoutContainersInTransactions(t *testing.T) {
	for what, test := range map[string]struct {
		multi  func(driver.Session, context.Context, []driver.Op) ([]driver.OpResult, error)
		create error
		tries  int64
	}{
		"the driver refuses it, without results": {func(driver.Session, context.Context, []driver.Op) ([]driver.OpResult, error) {
			return nil, driver.ErrBadArguments
		}, nil, 1},
		"the driver refuses it, with results": {refuses(driver.ErrBadArguments), nil, 1},
		"the server does not know it":         {refuses(driver.ErrUnimplemented), driver.ErrUnimplemented, 1},
		"it is not allowed":                   {refuses(driver.ErrNoAuth), nil, 1},
		"the connection is lost": {func(driver.Session, context.Context, []driver.Op) ([]driver.OpResult, error) {
			return nil, driver.ErrConnLoss
		}, nil, 2},
		"the reply is never readable": {func(s driver.Session, ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
			_, _ = s.Multi(ctx, ops)
			return nil, driver.ErrConnLoss
		}, nil, 2},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				m := &makers{Connector: e.Connector(), multi: test.multi, create: test.create}
				c, other := connect(t, m, nil), connect(t, e.Connector(), nil)
				for i, name := range names(5) {
					l := mustLock(t)(c.Mutex(name).Acquire(t.Context()))
					if _, err := other.Mutex(name).TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
						t.Errorf("a try of %s while it is held: %v", name, err)
					}
					mustRelease(t, l)
					if n, want := m.multis.Load(), min(int64(i)+1, test.tries); n != want {
						t.Errorf("%d transactions with a container for %d names, want %d", n, i+1, want)
					}
				}
				both := zklock.All(c.Mutex("x"), c.Mutex("y"))
				mustRelease(t, mustLock(t)(both.Acquire(t.Context())))
				time.Sleep(time.Minute)
				if n := nodes(e); n != 0 || m.multis.Load() != test.tries {
					t.Errorf("%d transactions with a container; left behind:\n%s", m.multis.Load(), e.Dump())
				}
			})
		})
	}
}

// A client that may not create znodes below the root gets ErrNoAuth, as from a plain create. It
// tries a transaction once only.
func TestFreshNameWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		m := &makers{Connector: e.Connector(), multi: refuses(driver.ErrNoAuth), create: driver.ErrNoAuth}
		c := connect(t, m, nil)
		for _, name := range names(3) {
			if _, err := c.Mutex(name).Acquire(t.Context()); !errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), "/zklock/"+name) {
				t.Errorf("acquire: %v, want ErrNoAuth and the path", err)
			}
		}
		if m.multis.Load() != 1 || m.creates.Load() != 3 {
			t.Errorf("%d transactions and %d creates, want 1 and 3", m.multis.Load(), m.creates.Load())
		}
	})
}

// The root was removed while the client had a session. It is created again, and fresh names
// are one transaction again.
func TestFreshNameBelowAMissingRoot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := memcontrol.Of(e).Delete("/zklock"); err != nil {
			t.Fatal(err)
		}
		both := mustLock(t)(zklock.All(c.Mutex("a"), c.Mutex("b")).Acquire(t.Context()))
		mustRelease(t, both)
		wantCost(t, "the next fresh name", cost(e, func() { mustRelease(t, mustLock(t)(c.Mutex("c").Acquire(t.Context()))) }), memcontrol.Ops{Multis: 2, MultiOps: 4})
	})
}

// In the other dialects a lock's znode may be below other znodes, or is persistent. A client
// creates it with a request of its own.
func TestFreshNamesOfOtherDialects(t *testing.T) {
	for _, dialect := range allDialects {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			m := &makers{Connector: e.Connector()}
			c := inDialect(t, m, dialect)
			mustRelease(t, mustLock(t)(c.Mutex("a/b").Acquire(t.Context())))
			if n := m.multis.Load(); n != 0 != (dialect == "zklock") {
				t.Errorf("dialect %s: %d transactions with a container", dialect, n)
			}
		})
	}
}

// Two clients use the same fresh names at the same time. For each name one of them creates
// the znode, and at any time at most one holds the lock.
func TestTwoClientsOfTheSameFreshNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const count = 1000
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		defer e.Close()
		holders := make([]atomic.Int32, count)
		tokens := make([][]zklock.Token, count)
		var wg sync.WaitGroup
		for range 2 {
			c := connect(t, e.Connector(), nil)
			for i, name := range names(count) {
				wg.Go(func() {
					l, err := c.Mutex(name).Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					if n := holders[i].Add(1); n != 1 {
						t.Errorf("%s has %d holders", name, n)
					}
					tokens[i] = append(tokens[i], l.Token()) // by one holder at a time
					time.Sleep(time.Millisecond)
					holders[i].Add(-1)
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		wg.Wait()
		for i, of := range tokens {
			if len(of) != 2 || of[0].Compare(of[1]) >= 0 {
				t.Errorf("name %d: tokens %v, want two that rise", i, of)
			}
		}
		if n := nodes(e); n != 0 {
			t.Errorf("%d nodes left", n)
		}
	})
}

// A name's znode belongs to the client or the other program that has created it. A client that has
// not created it reads it first, and does not write to it if it is not zklock's.
func TestFreshNameOfAnotherProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, operator := connect(t, e.Connector(), nil), plain(t, e)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := operator.Create(t.Context(), "/zklock/x", []byte("notes"), driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		wantCost(t, "a name whose znode is another program's", cost(e, func() {
			mustRelease(t, mustLock(t)(zklock.All(c.Mutex("x"), c.Mutex("y")).Acquire(t.Context())))
		}), memcontrol.Ops{Multis: 3, MultiOps: 6 + 4 + 2, Gets: 4, Children: 2})
		time.Sleep(time.Minute)
		if n, err := operator.Get(t.Context(), "/zklock/x"); err != nil || n.Stat.Version != 0 || string(n.Data) != "notes" {
			t.Errorf("the znode has %q, version %d, %v; want it unchanged", n.Data, n.Stat.Version, err)
		}
	})
}

// Writes for fresh names share a transaction with others only after some of them were
// applied: a driver that cannot make containers would refuse the others with them. After a
// name that exists they are sent by themselves again.
func TestFreshNamesShareTransactionsOnceTheyWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		var mu sync.Mutex
		sizes := map[int]int{} // transactions by the number of containers
		m := &makers{Connector: e.Connector(), multi: func(s driver.Session, ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
			n := 0
			for _, op := range ops {
				if isContainer(op) {
					n++
				} else if n == 0 {
					n = 1000 // another member
				}
			}
			mu.Lock()
			sizes[n]++
			mu.Unlock()
			return s.Multi(ctx, ops)
		}}
		c, other := connect(t, m, nil), connect(t, e.Connector(), nil)
		burst := func(from, to int) {
			t.Helper()
			clear(sizes)
			var wg sync.WaitGroup
			for i := from; i < to; i++ {
				wg.Go(func() { mustRelease(t, mustLock(t)(c.Mutex(fmt.Sprint("n", i)).Acquire(t.Context()))) })
			}
			wg.Wait()
		}
		if burst(0, 32); sizes[1] != 32 || len(sizes) != 1 {
			t.Errorf("transactions of the first fresh names by size: %v, want 32 of size 1", sizes)
		}
		if burst(32, 64); sizes[1] == 32 {
			t.Errorf("transactions of later fresh names by size: %v, want groups", sizes)
		}
		mustRelease(t, mustLock(t)(other.Mutex("n64").Acquire(t.Context())))
		mustRelease(t, mustLock(t)(c.Mutex("n64").Acquire(t.Context())))
		if burst(65, 97); sizes[1] != 32 || len(sizes) != 1 {
			t.Errorf("transactions after a name that existed by size: %v, want 32 of size 1", sizes)
		}
	})
}

// The outcome of the transaction is unknown: it was applied, it was not, or it is applied later. It
// is not repeated. At the end no node and no container is left: the client has removed them, since
// the servers of this test do not look for empty containers.
func TestFreshNameWithAnUnknownOutcome(t *testing.T) {
	corekit.Short(t)
	for _, fault := range []faultdriver.Fault{
		faultdriver.Drop(), faultdriver.LoseReply(), faultdriver.HangReply(), faultdriver.NotSent(), faultdriver.Fail(driver.ErrThrottled),
		faultdriver.LateAfter(time.Millisecond), faultdriver.LateAfter(time.Second), faultdriver.LateAfter(15 * time.Second),
	} {
		for _, wait := range []time.Duration{500 * time.Microsecond, time.Hour} {
			t.Run(fmt.Sprint(fault, " wait ", wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New(memdriver.WithReapInterval(24 * time.Hour))
					faults := faultdriver.NewToggle(faultdriver.Once(about(faultdriver.On(faultdriver.Multi, fault))))
					m := &makers{Connector: faultdriver.Wrap(e.Connector(), faults)}
					c, other := connect(t, m, nil), connect(t, e.Connector(), nil)
					for i := range 2 { // the first use of such a transaction, and a later one
						name := fmt.Sprint("n", i)
						faults.On()
						l, err := c.Mutex(name).Acquire(t.Context(), zklock.WithWait(wait))
						if err == nil {
							if err := l.Verify(t.Context()); err != nil {
								t.Errorf("Verify: %v", err)
							}
							if _, err := other.Mutex(name).TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
								t.Errorf("a try of a name that is held: %v", err)
							}
							time.Sleep(2 * time.Second)
							mustRelease(t, l)
						} else if wait == time.Hour || !errors.Is(err, zklock.ErrNotAcquired) {
							t.Error(err)
						}
						next := mustLock(t)(other.Mutex(name).Acquire(t.Context(), zklock.WithWait(time.Minute)))
						if err == nil && next.Token().Compare(l.Token()) <= 0 {
							t.Errorf("token %v after %v", next.Token(), l.Token())
						}
						mustRelease(t, next)
						time.Sleep(time.Minute)
						if n := nodes(e); n != 0 {
							t.Errorf("left behind:\n%s", e.Dump())
						}
					}
					again := fault.String() == "not-sent" || strings.HasPrefix(fault.String(), "fail")
					if n := m.multis.Load(); n != 2 && !again {
						t.Errorf("%d transactions with a container for two names", n)
					}
				})
			})
		}
	}
}

// A transaction for a fresh name was given up as lost, and is applied when the znode exists.
// It is refused as a whole, so there is no twin of the holder's node.
func TestLateFreshNameIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		gate := &faultdriver.Gate{}
		c := connect(t, faultdriver.Wrap(e.Connector(), about(faultdriver.Once(faultdriver.On(faultdriver.Multi, faultdriver.Late(gate))))), nil)
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		before := e.Dump()
		gate.Release()
		synctest.Wait()
		if n := nodes(e); n != 1 {
			t.Errorf("%d nodes, want the holder's\nbefore:\n%s\nafter:\n%s", n, before, e.Dump())
		}
		mustRelease(t, l)
	})
}

// A transaction for a fresh name is applied when its caller has given up. The client removes
// the node at once, and the container when it is idle.
func TestFreshNameOfACallerThatGaveUp(t *testing.T) {
	for _, fault := range []faultdriver.Fault{faultdriver.DelayReply(time.Second), faultdriver.LoseReply()} {
		t.Run(fault.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithReapInterval(24 * time.Hour))
				faults := faultdriver.Any(
					about(faultdriver.Once(faultdriver.On(faultdriver.Multi, fault))),
					about(faultdriver.On(faultdriver.Children, faultdriver.Nth(1, faultdriver.DelayReply(time.Second)))))
				c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil)
				if _, err := c.Mutex("x").Acquire(t.Context(), zklock.WithWait(100*time.Millisecond)); !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("acquire: %v, want ErrNotAcquired", err)
				}
				time.Sleep(3 * time.Second)
				if n := nodes(e); n != 0 || !strings.Contains(e.Dump(), "x container") {
					t.Errorf("want the container without a node:\n%s", e.Dump())
				}
				time.Sleep(time.Minute)
				if strings.Contains(e.Dump(), "x container") {
					t.Errorf("left behind:\n%s", e.Dump())
				}
			})
		})
	}
}
