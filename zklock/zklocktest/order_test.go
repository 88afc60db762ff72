package zklocktest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// witness stands for a test that Order may fail. Like a *testing.T it must not be used after its end.
type witness struct {
	testing.TB
	mu           sync.Mutex
	errors, logs []string // guarded by mu
	late         bool     // guarded by mu; it was used after its end
	ended        bool     // guarded by mu
	cleanups     []func()
}

func (w *witness) Helper()          {}
func (w *witness) Cleanup(f func()) { w.cleanups = append(w.cleanups, f) }

func (w *witness) Errorf(format string, args ...any) { w.add(&w.errors, fmt.Sprintf(format, args...)) }
func (w *witness) Logf(format string, args ...any)   { w.add(&w.logs, fmt.Sprintf(format, args...)) }

func (w *witness) add(to *[]string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = w.late || w.ended
	*to = append(*to, text)
}

// end ends the test that it stands for.
func (w *witness) end() {
	for _, f := range slices.Backward(w.cleanups) {
		f()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
}

// found returns the reports until now.
func (w *witness) found() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.errors)
}

// nest acquires locks one after the other, each under those before, and releases them.
func nest(t testing.TB, ctx context.Context, locks ...zklock.Acquirer) {
	t.Helper()
	for _, a := range locks {
		lock, err := a.Acquire(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		defer lock.Release(context.WithoutCancel(ctx))
		inner, cancel := lock.Context(ctx)
		defer cancel()
		ctx = inner
	}
}

// try is nest with a try for the last lock.
func try(t testing.TB, ctx context.Context, outer, inner zklock.Acquirer) {
	t.Helper()
	if err := zklock.Do(ctx, outer, func(ctx context.Context, _ *zklock.Lock) error {
		lock, err := inner.TryAcquire(ctx)
		if err != nil {
			return err
		}
		return lock.Release(context.WithoutCancel(ctx))
	}); err != nil {
		t.Error(err)
	}
}

// kit makes the locks of a case.
type kit struct {
	*testing.T
	*zklock.Client
}

func (k kit) reader(name string) zklock.Acquirer { return k.RWMutex(name).Reader() }
func (k kit) nest(locks ...zklock.Acquirer)      { k.T.Helper(); nest(k.T, k.T.Context(), locks...) }

// Each case acquires locks, one after the other unless it says otherwise, so that callers never wait.
func TestOrder(t *testing.T) {
	whole := func(name string) string { return name }
	for _, test := range []struct {
		name  string
		class []func(string) string
		run   func(k kit)
		want  []string // the first line of each report, without what all have
	}{
		{"one order", nil, func(k kit) {
			k.nest(k.Mutex("orders/1"), k.Mutex("customers/1"))
			k.nest(k.Mutex("orders/2"), k.Mutex("customers/1"))
		}, nil},
		{"opposite orders", nil, func(k kit) {
			k.nest(k.Mutex("orders/1"), k.Mutex("customers/1"))
			k.nest(k.Mutex("customers/2"), k.Mutex("orders/2"))
		}, []string{`the classes "customers" and "orders" in opposite orders`}},
		{"one report for a pair", nil, func(k kit) {
			for range 3 {
				k.nest(k.Mutex("orders/1"), k.Mutex("customers/1"))
				k.nest(k.Mutex("customers/2"), k.Mutex("orders/2"))
			}
			k.nest(k.reader("customers/3"), k.Mutex("orders/2"))
		}, []string{`the classes "customers" and "orders" in opposite orders`}},
		{"two pairs", nil, func(k kit) {
			k.nest(k.Mutex("a"), k.Mutex("b"))
			k.nest(k.Mutex("b"), k.Mutex("a"))
			k.nest(k.Mutex("c"), k.Mutex("d"))
			k.nest(k.Mutex("d"), k.Mutex("c"))
		}, []string{`the classes "a" and "b" in opposite orders`, `the classes "c" and "d" in opposite orders`}},
		{"three classes", nil, func(k kit) {
			k.nest(k.Mutex("a/1"), k.Mutex("b/1"))
			k.nest(k.Mutex("b/2"), k.Mutex("c/2"))
			k.nest(k.Mutex("c/3"), k.Mutex("a/3"))
		}, []string{`the classes "a", "b" and "c" in orders that form a circle`}},
		{"the outermost of three", nil, func(k kit) {
			k.nest(k.Mutex("a/1"), k.Mutex("b/1"), k.Mutex("c/1"))
			k.nest(k.Mutex("c/1"), k.Mutex("a/1"))
		}, []string{`the classes "a" and "c" in opposite orders`}},
		{"names of one class in one order", nil, func(k kit) {
			k.nest(k.Mutex("accounts/1"), k.Mutex("accounts/2"))
			k.nest(k.Mutex("accounts/2"), k.Mutex("accounts/3"))
			k.nest(k.Mutex("accounts/1"), k.Mutex("accounts/3"))
		}, nil},
		{"names of one class in opposite orders", nil, func(k kit) {
			for _, pair := range [][2]string{{"1", "2"}, {"2", "1"}, {"3", "4"}, {"4", "3"}} {
				k.nest(k.Mutex("accounts/"+pair[0]), k.Mutex("accounts/"+pair[1]))
			}
		}, []string{`the names "accounts/1" and "accounts/2" in opposite orders`}},
		{"names of one class from two places", nil, func(k kit) {
			k.nest(k.Mutex("accounts/1"), k.Mutex("accounts/2"))
			k.nest(k.Mutex("accounts/2"), k.Mutex("accounts/1"))
			k.nest(k.Mutex("accounts/3"), k.Mutex("accounts/4"))
			k.nest(k.Mutex("accounts/4"), k.Mutex("accounts/3"))
		}, []string{`the names "accounts/1" and "accounts/2" in opposite orders`, `the names "accounts/3" and "accounts/4" in opposite orders`}},
		{"names of one class in a circle", nil, func(k kit) {
			k.nest(k.Mutex("accounts/1"), k.Mutex("accounts/2"))
			k.nest(k.Mutex("accounts/2"), k.Mutex("accounts/3"))
			k.nest(k.Mutex("accounts/3"), k.Mutex("accounts/1"))
		}, []string{`the names "accounts/1", "accounts/2" and "accounts/3" in orders that form a circle`}},
		{"classes of the caller", []func(string) string{nil, func(name string) string {
			if strings.HasSuffix(name, "/audit") {
				return "audit"
			}
			return ""
		}}, func(k kit) {
			k.nest(k.Mutex("orders/1"), k.Mutex("orders/1/audit"))
			k.nest(k.Mutex("customers/1/audit"), k.Mutex("orders/2"))
		}, []string{`the classes "audit" and "orders" in opposite orders`}},
		{"each name a class", []func(string) string{whole}, func(k kit) {
			k.nest(k.Mutex("orders/1"), k.Mutex("customers/1"))
			k.nest(k.Mutex("customers/2"), k.Mutex("orders/2"))
		}, nil},
		{"All in any order", nil, func(k kit) {
			k.nest(zklock.All(k.Mutex("a/1"), k.Mutex("b/1"), k.Mutex("b/2")))
			k.nest(zklock.All(k.Mutex("b/2"), k.Mutex("c/1")))
			k.nest(zklock.All(k.Mutex("c/1"), k.Mutex("a/1")))
		}, nil},
		{"All under a lock, and opposite", nil, func(k kit) {
			k.nest(k.Mutex("a/1"), zklock.All(k.Mutex("b/1"), k.Mutex("c/1")))
			k.nest(k.Mutex("c/2"), k.Mutex("a/2"))
		}, []string{`the classes "a" and "c" in opposite orders`}},
		{"a lock under All, and opposite", nil, func(k kit) {
			k.nest(zklock.All(k.Mutex("a/1"), k.Mutex("b/1")), k.Mutex("c/1"))
			k.nest(k.Mutex("c/2"), k.Mutex("b/2"))
		}, []string{`the classes "b" and "c" in opposite orders`}},
		{"All, and two of its names one after the other", nil, func(k kit) { // see TestAllAndNestedWaitForEachOther
			k.nest(zklock.All(k.Mutex("a/1"), k.Mutex("b/1"), k.Mutex("c/1")))
			k.nest(k.Mutex("a/1"), k.Mutex("c/1"))
		}, []string{`the classes "a" and "c" one after the other and at once`}},
		{"All, and two of its names of one class one after the other", nil, func(k kit) {
			k.nest(k.Mutex("a/1"), k.Mutex("a/2"))
			k.nest(zklock.All(k.Mutex("a/1"), k.Mutex("a/2")))
		}, []string{`the names "a/1" and "a/2" one after the other and at once`}},
		{"readers without writers", nil, func(k kit) {
			k.nest(k.reader("a"), k.reader("b"))
			k.nest(k.reader("b"), k.reader("a"))
		}, nil},
		{"readers that meet with writers of one class", nil, func(k kit) {
			k.nest(k.Mutex("b"))
			k.nest(k.reader("a"), k.reader("b"))
			k.nest(k.reader("b"), k.reader("a"))
		}, nil},
		{"readers, and writers later", nil, func(k kit) {
			k.nest(k.reader("a"), k.reader("b"))
			k.nest(k.reader("b"), k.reader("a"))
			k.nest(k.Mutex("a"))
			k.nest(k.Mutex("b"))
		}, []string{`the classes "a" and "b" in opposite orders`}},
		{"readers within a class, and a writer later", nil, func(k kit) {
			k.nest(k.reader("a/1"), k.reader("a/2"))
			k.nest(k.reader("a/2"), k.reader("a/1"))
			k.nest(k.Mutex("a/3"))
		}, []string{`the names "a/1" and "a/2" in opposite orders`}},
		{"a reader waits for a writer, and a writer for a reader", nil, func(k kit) {
			k.nest(k.Mutex("a"), k.reader("b"))
			k.nest(k.Mutex("b"), k.reader("a"))
		}, []string{`the classes "a" and "b" in opposite orders`}},
		{"try", nil, func(k kit) {
			k.nest(k.Mutex("a"), k.Mutex("b"))
			try(k.T, k.T.Context(), k.Mutex("b"), k.Mutex("a"))
		}, nil},
		{"under a lock from a try", nil, func(k kit) {
			lock, err := k.Mutex("b").TryAcquire(k.T.Context())
			if err != nil {
				k.T.Fatal(err)
			}
			ctx, cancel := lock.Context(k.T.Context())
			defer cancel()
			nest(k.T, ctx, k.Mutex("a"))
			if err := lock.Release(k.T.Context()); err != nil {
				k.T.Error(err)
			}
			k.nest(k.Mutex("a"), k.Mutex("b"))
		}, []string{`the classes "a" and "b" in opposite orders`}},
		{"permits", nil, func(k kit) {
			k.nest(k.Semaphore("pool", 2), k.Mutex("a"))
			k.nest(k.Mutex("a"), k.Semaphore("pool", 2))
		}, []string{`the classes "a" and "pool" in opposite orders`}},
		{"Reenter", nil, func(k kit) {
			k.nest(k.Mutex("a"), k.Mutex("b"))
			if err := zklock.Do(k.T.Context(), k.Mutex("a"), func(ctx context.Context, _ *zklock.Lock) error {
				return zklock.Do(ctx, k.Mutex("b"), func(ctx context.Context, _ *zklock.Lock) error {
					return zklock.Do(ctx, k.Mutex("a"), func(context.Context, *zklock.Lock) error { return nil }, zklock.Reenter())
				})
			}); err != nil {
				k.T.Error(err)
			}
		}, nil},
		{"a name that the context holds", nil, func(k kit) {
			if err := zklock.Do(k.T.Context(), k.Mutex("a"), func(ctx context.Context, _ *zklock.Lock) error {
				return zklock.Do(ctx, k.Mutex("b"), func(ctx context.Context, _ *zklock.Lock) error {
					_, err := k.Mutex("a").Acquire(ctx)
					return err
				})
			}); !errors.Is(err, zklock.ErrDeadlock) {
				k.T.Errorf("%v, want ErrDeadlock", err)
			}
		}, nil},
		{"Detach", nil, func(k kit) {
			k.nest(k.Mutex("a"), k.Mutex("b"))
			if err := zklock.Do(k.T.Context(), k.Mutex("b"), func(ctx context.Context, _ *zklock.Lock) error {
				nest(k.T, zklock.Detach(ctx), k.Mutex("a"))
				return nil
			}); err != nil {
				k.T.Error(err)
			}
		}, nil},
		{"a lock that was released", nil, func(k kit) {
			k.nest(k.Mutex("a"), k.Mutex("b"))
			lock, err := k.Mutex("b").Acquire(k.T.Context())
			if err != nil {
				k.T.Fatal(err)
			}
			ctx, cancel := lock.Context(k.T.Context())
			defer cancel()
			if err := lock.Release(k.T.Context()); err != nil {
				k.T.Error(err)
			}
			nest(k.T, context.WithoutCancel(ctx), k.Mutex("a"))
		}, nil},
		{"an acquisition that fails", nil, func(k kit) {
			k.nest(k.Mutex("a"), k.Mutex("b"))
			if err := zklock.Do(k.T.Context(), k.Mutex("b"), func(ctx context.Context, _ *zklock.Lock) error {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				_, err := k.Mutex("a").Acquire(ctx)
				return err
			}); !errors.Is(err, context.Canceled) {
				k.T.Errorf("%v, want context.Canceled", err)
			}
		}, []string{`the classes "a" and "b" in opposite orders`}},
		{"a candidacy", nil, func(k kit) {
			elected := election.New(k.Client, "cleaner")
			stand := func(ctx context.Context) *election.Term {
				term, err := elected.Campaign(ctx)
				if err != nil {
					k.T.Fatal(err)
				}
				return term
			}
			term := stand(k.T.Context())
			ctx, cancel := term.Context(k.T.Context())
			nest(k.T, ctx, k.Mutex("a"))
			cancel()
			if err := term.Resign(k.T.Context()); err != nil {
				k.T.Error(err)
			}
			if err := zklock.Do(k.T.Context(), k.Mutex("a"), func(ctx context.Context, _ *zklock.Lock) error {
				return stand(ctx).Resign(context.WithoutCancel(ctx))
			}); err != nil {
				k.T.Error(err)
			}
		}, []string{`the classes "a" and "cleaner" in opposite orders`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, _ := zklocktest.New(t)
			w := &witness{}
			defer w.end()
			zklocktest.Order(w, client, test.class...)
			test.run(kit{t, client})
			var lines []string
			for _, report := range w.found() {
				line, _, _ := strings.Cut(report, "\n")
				line = strings.TrimPrefix(line, "zklocktest: callers acquire ")
				lines = append(lines, strings.TrimSuffix(line, ", and can run into a deadlock"))
			}
			if !slices.Equal(lines, test.want) {
				t.Errorf("got\n%s\nwant\n%s\nreports:\n%s", strings.Join(lines, "\n"), strings.Join(test.want, "\n"), strings.Join(w.found(), "\n"))
			}
		})
	}
}

func moves(t testing.TB, client *zklock.Client) {
	err := zklock.Do(t.Context(), client.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
		return zklock.Do(ctx, client.Mutex("customers/7"), func(context.Context, *zklock.Lock) error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
}

func merges(t testing.TB, client *zklock.Client) {
	customer, err := client.Mutex("customers/7").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := customer.Context(t.Context())
	defer cancel()
	order, err := client.Mutex("orders/43").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(order.Release(t.Context()), customer.Release(t.Context())); err != nil {
		t.Error(err)
	}
}

// A report names both callers' lines, and no lines of the library and of package testing.
func TestOrderShowsBothStacks(t *testing.T) {
	client, _ := zklocktest.New(t)
	w := &witness{}
	defer w.end()
	zklocktest.Order(w, client)
	moves(t, client)
	merges(t, client)
	got := strings.Join(w.found(), "\n")
	got = regexp.MustCompile(`\(\S*/(\w+\.go):\d+\)`).ReplaceAllString(got, "($1)")
	got = strings.ReplaceAll(got, "github.com/zklock/go-zklock/zklock/", "")
	const want = `zklocktest: callers acquire the classes "customers" and "orders" in opposite orders, and can run into a deadlock
One caller holds "customers/7" and acquires "orders/43":
	zklocktest_test.merges (order_test.go)
	zklocktest_test.TestOrderShowsBothStacks (order_test.go)
Another caller holds "orders/42" and acquires "customers/7":
	zklocktest_test.moves.func1 (order_test.go)
	zklocktest_test.moves (order_test.go)
	zklocktest_test.TestOrderShowsBothStacks (order_test.go)
Acquire them in one order everywhere, or everywhere at once with zklock.All.`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A caller that takes two names of an All one after the other can wait in a circle with the All, since
// that waits in both queues at once. So Order counts it.
func TestAllAndNestedWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := zklocktest.New(t)
		w := &witness{}
		defer w.end()
		zklocktest.Order(w, client)
		ctx, cancel := context.WithCancel(t.Context())
		var all error
		var callers sync.WaitGroup
		err := zklock.Do(ctx, client.Mutex("a"), func(ctx context.Context, _ *zklock.Lock) error {
			callers.Go(func() { _, all = zklock.All(client.Mutex("a"), client.Mutex("b")).Acquire(zklock.Detach(ctx)) })
			synctest.Wait()
			callers.Go(func() {
				synctest.Wait() // until the function waits for b, and All for a
				cancel()
			})
			_, err := client.Mutex("b").Acquire(ctx)
			return err
		})
		callers.Wait()
		if !errors.Is(err, context.Canceled) || !errors.Is(all, context.Canceled) {
			t.Errorf("%v and %v, want both to wait until their contexts ended", err, all)
		}
		if found := w.found(); len(found) != 1 || !strings.Contains(found[0], `Another caller acquires "a" and "b" at once:`) {
			t.Errorf("reports: %q, want one with the All", found)
		}
	})
}

// Two callers never meet, and belong to two clients, as in two processes.
func TestOrderOfTwoClients(t *testing.T) {
	a, ensemble := zklocktest.New(t)
	b, err := zklock.OpenConnector(ensemble.Connector())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	w := &witness{}
	defer w.end()
	zklocktest.Order(w, a)
	zklocktest.Order(w, b)
	for _, f := range []func(){func() { moves(t, a) }, func() { merges(t, b) }} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	if found := w.found(); len(found) != 1 {
		t.Errorf("reports: %q, want one", found)
	}
	other := &witness{}
	defer other.end()
	zklocktest.Order(other, a)
	merges(t, a)
	if found := other.found(); found != nil {
		t.Errorf("another test's reports: %q, want none", found)
	}
}

// Many goroutines of parallel tests share a client. Each test gets one report, whichever acquisition closes
// the circle, and none after its end.
func TestOrderInParallel(t *testing.T) {
	client, _ := zklocktest.New(t)
	var witnesses [4]*witness
	t.Run("together", func(t *testing.T) {
		for i := range witnesses {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				w := &witness{}
				witnesses[i] = w
				zklocktest.Order(w, client)
				var callers sync.WaitGroup
				for n := range 16 {
					callers.Go(func() {
						// Each goroutine has names of its own, so that none waits for another one.
						a, b := client.Mutex(fmt.Sprintf("a/%d/%d", i, n)), client.Mutex(fmt.Sprintf("b/%d/%d", i, n))
						nest(t, t.Context(), a, b)
						nest(t, t.Context(), b, a)
					})
				}
				callers.Wait()
				w.end()
			})
		}
	})
	for i, w := range witnesses {
		if found := w.found(); len(found) != 1 {
			t.Errorf("test %d got %d reports, want 1: %q", i, len(found), found)
		}
		if w.late {
			t.Errorf("test %d was used after its end", i)
		}
	}
}

// After the end of a test the client's acquisitions are not its own.
func TestOrderEndsWithItsTest(t *testing.T) {
	client, _ := zklocktest.New(t)
	w := &witness{}
	names := 0
	zklocktest.Order(w, client)
	zklocktest.Order(w, client, func(string) string { names++; return "" })
	moves(t, client)
	w.end()
	before := names
	merges(t, client)
	if found := w.found(); found != nil || w.late {
		t.Errorf("reports after the end: %q", found)
	}
	if before == 0 || names != before {
		t.Errorf("the function got %d names before the end, and %d after it, want some and 0", before, names-before)
	}
}

// An acquisition may begin before the end of its test, and close a circle after it.
func TestOrderReportsNothingAfterTheEnd(t *testing.T) {
	client, _ := zklocktest.New(t)
	w := &witness{}
	zklocktest.Order(w, client, func(name string) string {
		if name == "orders/43" {
			w.end()
		}
		return ""
	})
	moves(t, client)
	merges(t, client)
	if found := w.found(); found != nil || w.late {
		t.Errorf("reports after the end: %q", found)
	}
}

// 10,000 pairs of names of one class take no more memory than the bound, and those that are remembered
// are still compared. The log says so once.
func TestOrderOfManyNames(t *testing.T) {
	client, _ := zklocktest.New(t)
	w := &witness{}
	defer w.end()
	zklocktest.Order(w, client)
	name := func(i int) zklock.Acquirer { return client.Mutex(fmt.Sprintf("accounts/%03d", i)) }
	var outer, inner []zklock.Acquirer
	for i := range 100 {
		outer, inner = append(outer, name(i)), append(inner, name(100+i))
	}
	nest(t, t.Context(), zklock.All(outer...), zklock.All(inner...))
	if found := w.found(); found != nil {
		t.Errorf("reports: %q, want none", found)
	}
	nest(t, t.Context(), name(100), name(0))
	if found := w.found(); len(found) != 1 {
		t.Errorf("reports: %q, want one", found)
	}
	if len(w.logs) != 1 || !strings.Contains(w.logs[0], "no more than 4096 orders") {
		t.Errorf("log: %q, want one line about the bound", w.logs)
	}
}

// A nil Client is a mistake in the test.
func TestOrderWithoutAClient(t *testing.T) {
	w := &witness{}
	defer w.end()
	zklocktest.Order(w, nil)
	if found := w.found(); len(found) != 1 || !strings.Contains(found[0], "nil Client") {
		t.Errorf("reports: %q", found)
	}
}

// A test finds opposite orders, though its callers come one after the other and never wait.
func ExampleOrder() {
	t := &example{}
	defer t.end()
	client, _ := zklocktest.New(t)

	order := &witness{} // stands for t
	defer order.end()
	zklocktest.Order(order, client)
	ctx := context.Background()
	nested := func(outer, inner string) error {
		return zklock.Do(ctx, client.Mutex(outer), func(ctx context.Context, _ *zklock.Lock) error {
			return zklock.Do(ctx, client.Mutex(inner), func(context.Context, *zklock.Lock) error { return nil })
		})
	}
	fmt.Println(nested("orders/42", "customers/7"))
	fmt.Println(nested("customers/8", "orders/43"))
	report, _, _ := strings.Cut(order.found()[0], "\n")
	fmt.Println(report)
	// Output:
	// <nil>
	// <nil>
	// zklocktest: callers acquire the classes "customers" and "orders" in opposite orders, and can run into a deadlock
}

// One service takes accounts and calls the other, which takes customers; another request goes the other
// way round.
func TestOrderThroughCallers(t *testing.T) {
	for _, mode := range []zklock.Mode{zklock.Exclusive, zklock.Shared} {
		w := &witness{TB: t}
		accounts, ensemble := zklocktest.New(t)
		customers, err := zklock.OpenConnector(ensemble.Connector())
		if err != nil {
			t.Fatal(err)
		}
		defer customers.Close()
		zklocktest.Order(w, accounts)
		zklocktest.Order(w, customers)
		of := func(c *zklock.Client, name string) zklock.Acquirer {
			if mode == zklock.Shared {
				return c.RWMutex(name).Reader()
			}
			return c.Mutex(name)
		}
		// call makes a request to a service under a lock of the caller.
		call := func(held, wanted zklock.Acquirer) {
			if err := zklock.Do(t.Context(), held, func(_ context.Context, lock *zklock.Lock) error {
				called := zklock.ContextWithCallerLocks(t.Context(), zklock.CallerLock{Name: lock.Name(), Mode: lock.Mode(), Token: lock.Token()})
				nest(t, called, wanted)
				return nil
			}); err != nil {
				t.Error(err)
			}
		}
		call(of(accounts, "accounts/7"), of(customers, "customers/1"))
		if found := w.found(); len(found) != 0 {
			t.Errorf("%v: one order alone is reported: %q", mode, found)
		}
		call(of(customers, "customers/2"), of(accounts, "accounts/8"))
		want := 1
		if mode == zklock.Shared {
			want = 0 // readers do not wait for each other
		}
		if found := w.found(); len(found) != want {
			t.Errorf("%v: reports %q, want %d", mode, found, want)
		}
		w.end()
	}
}
