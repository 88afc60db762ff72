package zklock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// traceKey is the context key of the traceparent that the Inject hook of events returns.
type traceKey struct{}

func withTrace(ctx context.Context, trace string) context.Context {
	return context.WithValue(ctx, traceKey{}, trace)
}

// events records the contenders that the Wait and Ahead hooks of a client were called with.
type events struct {
	mu    sync.Mutex
	ahead []zklock.Contender // guarded by mu
}

func (s *events) hooks() zklock.Option {
	note := func(e zklock.WaitEvent) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ahead = append(s.ahead, e.Ahead)
	}
	return zklock.WithHooks(zklock.Hooks{
		Inject: func(ctx context.Context) string { trace, _ := ctx.Value(traceKey{}).(string); return trace },
		Wait: func(ctx context.Context, e zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			note(e)
			return ctx, nil
		},
		Ahead: func(_ context.Context, e zklock.WaitEvent) { note(e) },
	})
}

// take returns the labels and traces of the events since the last call.
func (s *events) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, a := range s.ahead {
		all = append(all, fmt.Sprintf("%s/%s", a.Label, a.Trace))
	}
	s.ahead = nil
	return strings.Join(all, " ")
}

// describing opens a client that keeps names, and has an identity and the hooks of events. Its
// rewrites of queue nodes take a while, so that a waiter reads a node before.
func describing(t *testing.T, e *memdriver.Ensemble, s *events, keep string, params ...string) *zklock.Client {
	t.Helper()
	all := map[string]string{"keep": keep}
	for i := 0; i < len(params); i += 2 {
		all[params[i]] = params[i+1]
	}
	slow := faultdriver.On(faultdriver.Set, faultdriver.Delay(100*time.Millisecond))
	return connect(t, faultdriver.Wrap(e.Connector(), slow), all, s.hooks(), zklock.WithIdentity(zklock.Identity{Host: "web-3", PID: 812}))
}

// keepFirst uses a name until the client keeps it. All uses have the label and the trace "first".
func keepFirst(t *testing.T, c *zklock.Client, name string) {
	t.Helper()
	for uses := 0; c.Stats().Kept == 0; uses++ {
		if uses == 100 {
			t.Fatalf("%s is not kept after %d uses", name, uses)
		}
		mustRelease(t, mustLock(t)(c.Mutex(name).Acquire(withTrace(t.Context(), "first"), labelled("first"))))
	}
	synctest.Wait()
}

// fails returns the end of the error of a wait that ends after a time.
func fails(t *testing.T, a zklock.Acquirer, after time.Duration) string {
	t.Helper()
	_, err := a.Acquire(t.Context(), zklock.WithWait(after))
	if err == nil {
		t.Fatal("the lock was acquired, want it to be held")
	}
	synctest.Wait()
	return err.Error()[strings.LastIndex(err.Error(), "; ")+2:]
}

// contenderAt returns the first contender of a name, in short.
func contenderAt(t *testing.T, c *zklock.Client, name string, now time.Time) string {
	t.Helper()
	found, err := c.Contenders(t.Context(), name)
	if err != nil || len(found) == 0 {
		t.Fatalf("%+v, %v", found, err)
	}
	age := "-"
	if at := found[0].Since; !at.IsZero() {
		age = now.Sub(at).String()
	}
	return fmt.Sprintf("%s/%s since %s, kept %v", found[0].Label, found[0].Trace, age, found[0].Kept)
}

// TestKeptNameShowsItsHolder: what others read during ten holds of a kept name is about those
// holds, once there is another contender. Before that they read nothing about a holder.
func TestKeptNameShowsItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
		var mine, theirs events
		a, b, op := describing(t, e, &mine, "1h"), describing(t, e, &theirs, "1h"), connect(t, e.Connector(), nil)
		for i := range 10 {
			keepFirst(t, a, "x")
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Minute))) // errors have whole seconds
			label := fmt.Sprint("hold-", i)
			var l *zklock.Lock
			wantCost(t, "the hold", cost(e, func() {
				l = mustLock(t)(a.Mutex("x").Acquire(withTrace(t.Context(), "trace-"+label), labelled(label)))
			}), free)
			began := time.Now()
			time.Sleep(3 * time.Second)
			if got, want := contenderAt(t, op, "x", began), "/ since -, kept true"; got != want {
				t.Errorf("%s: without another contender an operator reads %q, want %q", label, got, want)
			}
			if got, want := fails(t, b.Mutex("x"), 300*time.Millisecond), fmt.Sprintf("held by web-3/812 %q, which asked for it 3s ago", label); got != want {
				t.Errorf("%s: the error of a wait ends with %q, want %q", label, got, want)
			}
			if got, want := theirs.take(), fmt.Sprintf("/ %s/trace-%[1]s", label); got != want {
				t.Errorf("%s: the Wait and Ahead hooks got %q, want %q", label, got, want)
			}
			if got, want := contenderAt(t, op, "x", began), fmt.Sprintf("%s/trace-%[1]s since 0s, kept false", label); got != want {
				t.Errorf("%s: an operator reads %q, want %q", label, got, want)
			}
			mustRelease(t, l)
			time.Sleep(time.Second)
		}
	})
}

// TestRecallIsOneRewrite: another client queues for a kept name that is in use. The client that
// keeps the name then describes the holder in its node, with one read and one write. If readers
// hold it, the same write makes a writer's node a reader's.
func TestRecallIsOneRewrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, held := range []zklock.Mode{zklock.Exclusive, zklock.Shared} {
			e := memdriver.New()
			var reads, writes atomic.Int64
			a := connect(t, faultcontrol.Control(e.Connector(), func(op faultdriver.Op) faultdriver.Fault {
				switch node := len(op.Paths) == 1 && strings.Contains(op.Paths[0], "_c_"); {
				case node && op.Kind == faultdriver.Get:
					reads.Add(1)
				case node && op.Kind == faultdriver.Set:
					writes.Add(1)
				}
				return faultdriver.None()
			}), map[string]string{"keep": "1h"}, (&events{}).hooks())
			b := connect(t, e.Connector(), nil)
			keepFirst(t, a, "x")
			from := zklock.Acquirer(a.Mutex("x"))
			if held == zklock.Shared {
				from = a.RWMutex("x").Reader()
			}
			l := mustLock(t)(from.Acquire(withTrace(t.Context(), "t"), labelled("l")))
			time.Sleep(time.Minute)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			if r, w := reads.Load(), writes.Load(); r != 0 || w != 0 {
				t.Errorf("%v: %d reads and %d writes of a name that is used alone, want none", held, r, w)
			}
			go func() { _, err := b.Mutex("x").Acquire(ctx); ended <- err }()
			time.Sleep(time.Minute)
			if r, w := reads.Load(), writes.Load(); r != 1 || w != 1 {
				t.Errorf("%v: the recall cost %d reads and %d writes, want one of each", held, r, w)
			}
			found, err := b.Contenders(t.Context(), "x")
			if err != nil || len(found) != 2 || found[0].Mode != held || found[0].Label != "l" || found[0].Trace != "t" || found[0].Kept {
				t.Errorf("%v: others read %+v, %v", held, found, err)
			}
			cancel()
			<-ended
			mustRelease(t, l)
		}
	})
}

// TestFirstHolderOfAKeepableName: a name that may be kept, and was not yet, shows its holder to a
// waiter, too: a sixth of the session timeout after the grant the client looks for waiters.
func TestFirstHolderOfAKeepableName(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var mine, theirs events
		a, b := describing(t, e, &mine, "1h"), describing(t, e, &theirs, "1h")
		for _, early := range []bool{true, false} {
			name := fmt.Sprint("x-", early)
			use(t, a.Mutex(name))
			l := mustLock(t)(a.Mutex(name).Acquire(withTrace(t.Context(), "t"), labelled("l")))
			if !early {
				time.Sleep(time.Minute)
			}
			if got, want := fails(t, b.Mutex(name), 3*time.Second), `held by web-3/812 "l", which asked for it `; !strings.HasPrefix(got, want) {
				t.Errorf("early %v: the error of a wait ends with %q, want %q", early, got, want)
			}
			if got, want := theirs.take(), "/ l/t"; got != want {
				t.Errorf("early %v: the Wait and Ahead hooks got %q, want %q", early, got, want)
			}
			mustRelease(t, l)
			time.Sleep(time.Second)
			if n := nodes(e); n != 0 {
				t.Errorf("early %v: %d nodes are left, want 0: another contender has come", early, n)
			}
		}
	})
}

// TestWaiterWithAKeepableNode: after some uses in a row a client creates a node that it may keep,
// without a label. If the request must wait, the node shows its waiter, and later its holder, as
// other nodes do.
func TestWaiterWithAKeepableNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var mine events
		a, b, c := describing(t, e, &mine, "1s"), connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		keepFirst(t, a, "x")
		time.Sleep(2 * time.Second)
		if n := nodes(e); n != 0 {
			t.Fatalf("%d nodes after the time of the kept name", n)
		}
		first := mustLock(t)(b.Mutex("x").Acquire(t.Context()))
		next := acquiring(t, a.Mutex("x"), t.Context(), labelled("l"))
		if got, want := fails(t, c.Mutex("x"), time.Second), `behind web-3/812 "l", 2 ahead`; got != want {
			t.Errorf("the error of a wait ends with %q, want %q", got, want)
		}
		mustRelease(t, first)
		l := <-next
		if got, want := fails(t, c.Mutex("x"), time.Second), `held by web-3/812 "l", which asked for it 2s ago`; got != want {
			t.Errorf("the error of a wait ends with %q, want %q", got, want)
		}
		mustRelease(t, l)
	})
}

// TestInheritedPlaceShowsItsHolder: a goroutine takes over the place of another one that has given
// up. The node shows the new goroutine when that has had the lock for a sixth of the session
// timeout. A reader that takes over a writer's place is shown at once: its client must write at
// that moment that the place is a reader's.
func TestInheritedPlaceShowsItsHolder(t *testing.T) {
	corekit.Short(t)
	synctest.Test(t, func(t *testing.T) {
		for _, reader := range []bool{false, true} {
			e := memdriver.New()
			a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
			first := mustLock(t)(b.Mutex("x").Acquire(t.Context(), labelled("first")))
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() { _, err := a.Mutex("x").Acquire(ctx, labelled("gives up")); gone <- err }()
			synctest.Wait()
			from, whileItWaits := zklock.Acquirer(a.Mutex("x")), "first,gives up"
			if reader {
				from, whileItWaits = a.RWMutex("x").Reader(), "first,heir"
			}
			heir := acquiring(t, from, t.Context(), labelled("heir"))
			cancel()
			<-gone
			time.Sleep(time.Minute)
			if got := shown(t, b, "x"); got != whileItWaits {
				t.Errorf("reader %v: while the heir waits others read %q, want %q", reader, got, whileItWaits)
			}
			mustRelease(t, first)
			l := <-heir
			time.Sleep(2 * time.Second)
			if got := shown(t, b, "x"); got != "heir" {
				t.Errorf("reader %v: others read %q, want heir", reader, got)
			}
			mustRelease(t, l)
		}
	})
}

// TestLongUsesOfAKeptName: during a long use of a name that may be kept, the client lists the queue
// once, to look for waiters. It needs this list anyway to keep the name, so later uses cost no
// request.
func TestLongUsesOfAKeptName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var mine events
		a := describing(t, e, &mine, "1h")
		use(t, a.Mutex("x"))
		long := func() {
			l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), labelled("l")))
			time.Sleep(5 * time.Second)
			mustRelease(t, l)
		}
		if got := cost(e, long); got.WatchChildren != 1 || got.Sets != 0 || got.Watches != 1 {
			t.Errorf("the first long use cost %+v, want one list and one watch on the node, and no write of its own", got)
		}
		if got := cost(e, func() { long(); long() }); got.WatchChildren+got.Sets+got.Gets+got.Watches+got.Children != 0 {
			t.Errorf("two more long uses cost %+v, want heartbeats only", got)
		}
		if n := a.Stats().Kept; n != 1 {
			t.Errorf("Kept is %d, want 1", n)
		}
	})
}

// TestLabelOfAKeptName: a label that a holder has set is read by others at once, also if the place
// is kept. A waiter shows it only when the holder's client has seen the waiter: before that, the
// label may be of a holder that has gone.
func TestLabelOfAKeptName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var mine, theirs events
		a, b, op := describing(t, e, &mine, "1h"), describing(t, e, &theirs, "1h"), connect(t, e.Connector(), nil)
		keepFirst(t, a, "x")
		began := time.Now()
		l := mustLock(t)(a.Mutex("x").Acquire(withTrace(t.Context(), "t"), labelled("l")))
		relabel(t, l, "row 5")
		if got, want := contenderAt(t, op, "x", began), "row 5/t since 0s, kept true"; got != want {
			t.Errorf("an operator reads %q, want %q", got, want)
		}
		mustRelease(t, l)
		wantCost(t, "the next hold", cost(e, func() {
			l = mustLock(t)(a.Mutex("x").Acquire(withTrace(t.Context(), "next"), labelled("next")))
		}), free)
		if got, want := fails(t, b.Mutex("x"), time.Second), `held by web-3/812 "next", which asked for it 1s ago`; got != want {
			t.Errorf("the error of a wait ends with %q, want %q", got, want)
		}
		if got, want := theirs.take(), "/ next/next"; got != want {
			t.Errorf("the Wait and Ahead hooks got %q, want %q", got, want)
		}
		mustRelease(t, l)
	})
}

// TestHandoverShowsTheHolderThatStays: after hand-overs inside a process, others read of the
// goroutine that had the lock a sixth of the session timeout after the grant, or the recall. A
// hand-over costs no request.
func TestHandoverShowsTheHolderThatStays(t *testing.T) {
	for _, test := range []struct {
		what   string
		queues bool // the place had to wait for its first grant
		kept   bool // the place was kept, and recalled
	}{{"granted at once", false, false}, {"granted after a wait", true, false}, {"recalled", false, true}} {
		t.Run(test.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				var mine, theirs events
				keep := "0s"
				if test.kept {
					keep = "1h"
				}
				a, b := describing(t, e, &mine, keep), describing(t, e, &theirs, "0s")
				var before *zklock.Lock
				if test.queues {
					before = mustLock(t)(b.Mutex("x").Acquire(t.Context()))
				}
				if test.kept {
					keepFirst(t, a, "x")
					time.Sleep(time.Minute)
				}
				acquire := func(label string) chan *zklock.Lock {
					return acquiring(t, a.Mutex("x"), withTrace(t.Context(), label), labelled(label))
				}
				first := acquire("one")
				second, third := acquire("two"), acquire("three")
				if test.queues {
					mustRelease(t, before)
				}
				l := <-first
				waiting := make(chan string, 1)
				go func() { waiting <- fails(t, b.Mutex("x"), 10*time.Second) }()
				synctest.Wait()
				if got := cost(e, func() {
					mustRelease(t, l)
					l = <-second
					mustRelease(t, l)
					l = <-third
				}); got != free {
					t.Errorf("two hand-overs cost %+v", got)
				}
				if got := shown(t, b, "x"); !test.kept && !strings.HasPrefix(got, "one,") {
					t.Errorf("right after the hand-overs others read %q, want one", got)
				}
				began := time.Now()
				if got, want := <-waiting, `held by web-3/812 "three", which asked for it 10s ago`; got != want {
					t.Errorf("the error of a wait ends with %q, want %q", got, want)
				}
				want := "one/one three/three"
				if test.kept {
					want = "/ " + want
				}
				if got := theirs.take(); got != want {
					t.Errorf("the Wait and Ahead hooks got %q, want %q", got, want)
				}
				if got, want := contenderAt(t, b, "x", began), "three/three since 0s, kept false"; got != want {
					t.Errorf("others read %q, want %q", got, want)
				}
				mustRelease(t, l)
			})
		})
	}
}

// TestSteadyHoldersAreNotRewritten: a holder that the data describe costs no further request.
func TestSteadyHoldersAreNotRewritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, b := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), labelled("l"), zklock.WithRevocable()))
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		waited := mustLock(t)(b.RWMutex("x").Reader().Acquire(t.Context()))
		if got := cost(e, func() { time.Sleep(5 * time.Second) }); got.Gets+got.Sets+got.Children+got.WatchChildren != 0 {
			t.Errorf("5s of two holds cost %+v, want heartbeats and a watch", got)
		}
		mustRelease(t, l)
		mustRelease(t, waited)
	})
}

// TestWatchOfAKeptName: a Watch shows the holder of a kept name, a reader too, when there is another
// contender.
func TestWatchOfAKeptName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		var mine events
		a, b := describing(t, e, &mine, "1h"), connect(t, e.Connector(), nil)
		for mark, from := range map[string]zklock.Acquirer{"": a.Mutex("x"), "/": a.RWMutex("y").Reader()} {
			use(t, from)
			v := watching(t, connect(t, e.Connector(), nil), from.Name())
			v.next("a name that is not in use", "")
			l := mustLock(t)(from.Acquire(t.Context(), labelled("first")))
			v.next("the first use", mark+"*")
			mustRelease(t, l)
			l = mustLock(t)(from.Acquire(t.Context(), labelled("second")))
			v.next("the second use of the node")
			waiter := acquiring(t, b.Mutex(from.Name()), t.Context(), labelled("b"))
			v.next("another contender", mark+"* b", "second"+mark+"* b")
			mustRelease(t, l)
			mustRelease(t, <-waiter)
			v.stop()
		}
	})
}

// TestDescriptionsSettle: goroutines of a client acquire a name in all ways, hand it over, keep it,
// set labels and downgrade, while requests are late and their replies are lost, and another
// client appears and leaves. If the other client waits when a goroutine has had the lock for
// half of the session timeout, it reads a description of this goroutine, with its latest label.
func TestDescriptionsSettle(t *testing.T) {
	for seed := range uint64(corekit.Crowd(long.Count(t, "ZKLOCK_RUNS", 30, 150))) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 29))
			e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
			late := faultdriver.Random(seed, 0.2, faultdriver.Delay(30*time.Millisecond), faultdriver.LoseReply(), faultdriver.Drop(),
				faultdriver.DelayReply(200*time.Millisecond), faultdriver.LateAfter(time.Second))
			faults := faultdriver.On(faultdriver.Get, late)
			if seed%2 == 0 {
				faults = faultdriver.On(faultdriver.Set, late)
			}
			keep := "0s"
			if seed%3 > 0 {
				keep = "1m"
			}
			params := map[string]string{"keep": keep, "handover_time": fmt.Sprint(50+rng.IntN(200), "ms")}
			a := connect(t, faultdriver.Wrap(e.Connector(), faults), params, (&events{}).hooks())
			b := connect(t, e.Connector(), nil)
			acquire := func(label string, reader bool) chan *zklock.Lock {
				from := zklock.Acquirer(a.Mutex("x"))
				if reader {
					from = a.RWMutex("x").Reader()
				}
				opts := []zklock.AcquireOption{labelled(label)}
				if rng.IntN(3) == 0 {
					opts = append(opts, zklock.WithRevocable())
				}
				return acquiring(t, from, withTrace(t.Context(), "trace of "+label), opts...)
			}
			for round := range 12 {
				for range rng.IntN(5) { // perhaps it is kept then
					mustRelease(t, <-acquire("early", rng.IntN(3) == 0))
				}
				var waiter chan error
				ctx, cancel := context.WithCancel(t.Context())
				comes := func() {
					done := make(chan error, 1)
					waiter = done
					go func() {
						l, err := b.Mutex("x").Acquire(ctx, labelled("b"))
						if l != nil {
							time.Sleep(50 * time.Millisecond)
							err = l.Release(context.Background())
						}
						done <- err
					}()
					time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
				}
				if rng.IntN(4) == 0 {
					comes()
				}
				if rng.IntN(3) == 0 { // a goroutine gives up, and may leave its place to the next one
					go func() {
						if l, err := a.Mutex("x").Acquire(t.Context(), labelled("quits"), zklock.WithWait(20*time.Millisecond)); err == nil {
							mustRelease(t, l)
						}
					}()
					time.Sleep(10 * time.Millisecond)
				}
				var queue []chan *zklock.Lock
				for i := range 1 + rng.IntN(4) {
					reader := i%2 == round%2 // not two at a time: readers that share a place share its label
					queue = append(queue, acquire(fmt.Sprint(round, "-", i), reader))
				}
				var l *zklock.Lock
				label, trace := "", ""
				for i, got := range queue {
					if l != nil {
						mustRelease(t, l)
					}
					l = <-got
					label, trace = fmt.Sprint(round, "-", i), fmt.Sprint("trace of ", round, "-", i)
					time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
					if rng.IntN(8) == 0 {
						time.Sleep(2 * time.Second)
					}
				}
				time.Sleep(100 * time.Millisecond)
				if len(waiter) == cap(waiter) { // the other client does not want the lock yet, or has had it
					comes()
				}
				if rng.IntN(3) == 0 && l.Mode() == zklock.Exclusive {
					if err := l.Downgrade(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if rng.IntN(3) == 0 {
					label += ", set"
					relabel(t, l, label)
				}
				time.Sleep(6 * time.Second)
				found, err := b.Contenders(t.Context(), "x")
				if err != nil || len(found) < 2 {
					t.Fatalf("seed %d, round %d: %+v, %v", seed, round, found, err)
				}
				if c := found[0]; c.Label != label || c.Trace != trace || c.Kept {
					t.Errorf("seed %d, round %d: the holder has the label %q, and others read %+v", seed, round, label, c)
				}
				mustRelease(t, l)
				cancel()
				<-waiter
				time.Sleep(time.Second)
			}
		})
	}
}
