package integration_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/integration_test/ensemble"
	"github.com/zklock/go-zklock/integration_test/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// TestFiftyGoroutines has a plain counter that only the lock protects: the race
// detector sees what the count does not.
func TestFiftyGoroutines(t *testing.T) {
	const n = 50
	e := sharedEnsemble(t)
	var clients []*zklock.Client
	for range 5 {
		clients = append(clients, dial(t, e.Hosts(), quick()))
	}
	one := clients[0].Mutex("one")
	for _, contest := range []struct {
		name  string
		mutex func(i int) *zklock.Mutex
	}{
		{"each a value of its own", func(int) *zklock.Mutex { return clients[0].Mutex("own") }},
		{"all one value", func(int) *zklock.Mutex { return one }},
		{"of five clients", func(i int) *zklock.Mutex { return clients[i%len(clients)].Mutex("several") }},
	} {
		t.Run(contest.name, func(t *testing.T) {
			counter := 0
			var tokens []zklock.Token
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					err := zklock.Do(within(t), contest.mutex(i), func(ctx context.Context) error {
						l, ok := zklock.FromContext(ctx)
						if !ok {
							return errors.New("the context carries no lock")
						}
						read := counter
						tokens = append(tokens, l.Token())
						err := l.Verify(ctx) // takes a while
						counter = read + 1
						return err
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if counter != n {
				t.Errorf("counted %d, want %d", counter, n)
			}
			if !slices.IsSortedFunc(tokens, zklock.Token.Compare) || len(slices.Compact(tokens)) != n {
				t.Errorf("tokens do not grow from holder to holder: %v", tokens)
			}
		})
	}
	acquired := uint64(0)
	for _, c := range clients {
		st := c.Stats()
		acquired += st.Acquired
		if st.Held != 0 || st.Waiting != 0 || st.Lost != 0 || st.Failed != 0 {
			t.Errorf("in the end: %+v", st)
		}
	}
	if acquired != 3*n {
		t.Errorf("%d acquisitions were counted, want %d", acquired, 3*n)
	}
}

// TestEndedWaitLeavesNoNode: neither the contender's node nor its place among
// others, however the wait ends.
func TestEndedWaitLeavesNoNode(t *testing.T) {
	e := sharedEnsemble(t)
	hooks, waiting := waits()
	holder, other, c := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks)), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	held := acquire(t, holder.Mutex("x"))
	m := c.Mutex("x")

	ctx, cancel := context.WithCancelCause(context.Background())
	cancelled := try(t, ctx, m)
	receive(t, "a wait", waiting)
	behind := try(t, within(t), other.Mutex("x"))
	receive(t, "another wait", waiting)
	eventually(t, "all three are in the queue", func() bool { return len(contenders(t, raw, m)) == 3 })
	reason := errors.New("changed my mind")
	cancel(reason)
	if _, err := cancelled.result(t); !errors.Is(err, zklock.ErrNotAcquired) || !errors.Is(err, context.Canceled) || !errors.Is(err, reason) {
		t.Errorf("cancelled: %v, want ErrNotAcquired, context.Canceled and the cause", err)
	}

	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	if _, err := m.Acquire(ctx); !errors.Is(err, zklock.ErrNotAcquired) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v, want ErrNotAcquired and context.DeadlineExceeded", err)
	}
	if _, err := m.Acquire(within(t), zklock.WithWait(time.Second)); !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("WithWait: %v, want ErrNotAcquired and no context's error", err)
	}
	if _, err := m.TryAcquire(within(t)); !errors.Is(err, zklock.ErrNotAcquired) {
		t.Errorf("TryAcquire: %v, want ErrNotAcquired", err)
	}

	eventually(t, "the holder and the one who still waits are alone in the queue", func() bool {
		return len(contenders(t, raw, m)) == 2
	})
	behind.pending(t)
	release(t, held)
	release(t, behind.must(t))
	eventually(t, "nobody is in the queue", func() bool { return len(contenders(t, raw, m)) == 0 })
}

// TestFiveThousandEndedWaitsLeaveNothing, neither here nor there.
func TestFiveThousandEndedWaitsLeaveNothing(t *testing.T) {
	const waits, atATime, sessions = 5000, 100, 10
	e := sharedEnsemble(t)
	holder := dial(t, e.Hosts(), quick())
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	m := holder.Mutex("x")
	held := acquire(t, m)
	before := runtime.NumGoroutine()
	var clients []*zklock.Client // several, so that there are several nodes at a time
	for range sessions {
		clients = append(clients, dial(t, e.Hosts(), quick("pool_max_sessions", "1")))
	}
	var wg sync.WaitGroup
	for i := range atATime {
		m := clients[i%sessions].Mutex("x")
		wg.Go(func() {
			for range waits / atATime {
				// At any moment: before the enqueue, during it, while waiting.
				ctx, cancel := context.WithTimeout(context.Background(), rand.N(30*time.Millisecond))
				if _, err := m.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) ||
					!errors.Is(err, zklock.ErrNotAcquired) && !errors.Is(err, zklock.ErrUnavailable) {
					t.Errorf("%v, want the context's error and ErrNotAcquired or ErrUnavailable", err)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	eventually(t, "the holder is alone in the queue", func() bool { return len(contenders(t, raw, m)) == 1 })
	// A session has a dozen goroutines, and its driver keeps some for requests.
	const perSession = 50
	eventually(t, "the goroutines of the waits have ended", func() bool { return runtime.NumGoroutine() <= before+sessions*perSession })
	t.Logf("%d goroutines before, %d after", before, runtime.NumGoroutine())
	for _, c := range clients {
		if st := c.Stats(); st.Waiting != 0 || st.Held != 0 || st.Acquired != 0 || st.Failed != waits/sessions {
			t.Errorf("in the end: %+v", st)
		}
		release(t, acquire(t, c.Mutex("y"))) // it works as before
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	const ofHolder = 20 // it goes on meanwhile, with a watch on its node for example
	eventually(t, "all goroutines of the clients have ended", func() bool { return runtime.NumGoroutine() <= before+ofHolder })
	if held.Err() != nil || !held.Valid() {
		t.Errorf("the lock was lost meanwhile: %v", held.Err())
	}
	release(t, held)
}

// TestReleaseWhileDisconnectedIsDoneOnceConnected: the handle ends at once, the
// node goes later, and the session is none the worse.
func TestReleaseWhileDisconnectedIsDoneOnceConnected(t *testing.T) {
	e := sharedEnsemble(t)
	p := newProxy(t, e.Hosts())
	c, other := dial(t, p.Addr(), quick()), dial(t, e.Hosts(), quick())
	l := acquire(t, c.Mutex("x"))
	next := try(t, within(t), other.Mutex("x"))

	p.Cut()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleasePending) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Release: %v, want ErrReleasePending and the context's error", err)
	}
	if !errors.Is(l.Err(), zklock.ErrReleased) || l.Valid() || !isDone(l) {
		t.Errorf("the handle: %v, valid %v, done %v, want ErrReleased, false, true", l.Err(), l.Valid(), isDone(l))
	}
	if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleased) {
		t.Errorf("second Release: %v, want ErrReleased", err)
	}
	next.pending(t)
	p.Heal()
	release(t, next.must(t))
	if st := c.Stats(); st.SessionsLost != 0 || st.Reconnects == 0 || st.Lost != 0 {
		t.Errorf("%+v, want the session to have reconnected", st)
	}
	release(t, acquire(t, c.Mutex("x")))
}

func newProxy(t testing.TB, target string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// TestServerRestartLosesNothing if it is shorter than the sessions.
func TestServerRestartLosesNothing(t *testing.T) {
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{MaxSessionTimeout: time.Minute})
	hooks, waiting := waits()
	params := quick("session_timeout", "1m", "connect_timeout", "1m")
	clients := []*zklock.Client{dial(t, e.Hosts(), params), dial(t, e.Hosts(), params, zklock.WithHooks(hooks))}
	held := acquire(t, clients[0].Mutex("x"))
	next := try(t, within(t), clients[1].Mutex("x"))
	receive(t, "the wait", waiting)

	server := e.Server(0)
	for i, end := range []func() error{
		server.Stop, // in good order
		func() error { server.Kill(); return nil },
	} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		for _, c := range clients {
			eventually(t, "a client has reconnected", func() bool {
				st := c.Stats()
				return st.Reconnects > uint64(i) && st.Connected == 1
			})
		}
		if err := held.Verify(within(t)); err != nil || !held.Valid() || isDone(held) {
			t.Errorf("after restart %d: %v, valid %v, done %v, want it to be held", i+1, err, held.Valid(), isDone(held))
		}
		next.pending(t)
	}
	release(t, held)
	l := next.must(t)
	if l.Token().Compare(held.Token()) <= 0 {
		t.Errorf("token %v after %v", l.Token(), held.Token())
	}
	release(t, l)
	for _, c := range clients {
		if st := c.Stats(); st.SessionsLost != 0 || st.SessionsOpened != 1 || st.Lost != 0 {
			t.Errorf("%+v, want one session that was not lost", st)
		}
	}
}

// TestOperatorDeletesTheHoldersNode: the holder learns that it is one no more,
// whether it got in at once or after a wait.
func TestOperatorDeletesTheHoldersNode(t *testing.T) {
	e := sharedEnsemble(t)
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	hooks, waiting := waits()
	c, other := dial(t, e.Hosts(), quick("session_timeout", "3s")), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	first := acquire(t, c.Mutex("x"))
	next := try(t, within(t), other.Mutex("x"))
	receive(t, "the wait", waiting)
	deleteOldest(t, raw, c.Mutex("x"))
	second := next.must(t)
	wantLost(t, first)
	if st := c.Stats(); st.SessionsLost != 0 || st.Held != 0 || st.Lost != 1 {
		t.Errorf("%+v, want a session that was not lost", st)
	}

	deleteOldest(t, raw, c.Mutex("x"))
	wantLost(t, second)
	release(t, acquire(t, c.Mutex("x")))

	// Nobody told this one before it looked by itself.
	third := acquire(t, c.Mutex("y"))
	deleteOldest(t, raw, c.Mutex("y"))
	if err := third.Verify(within(t)); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("Verify: %v, want ErrLost", err)
	}
	wantLost(t, third)
	// Nor this one.
	fourth := acquire(t, c.Mutex("z"))
	deleteOldest(t, raw, c.Mutex("z"))
	if err := fourth.Release(within(t)); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
}

func wantLost(t *testing.T, l *zklock.Lock) {
	t.Helper()
	receive(t, "Done", l.Done())
	var lost *zklock.LostError
	if err := l.Err(); !errors.Is(err, zklock.ErrLost) || !errors.As(err, &lost) || l.Valid() {
		t.Errorf("%v, valid %v, want a *LostError", err, l.Valid())
	}
}

// deleteOldest does what an operator does to the one in front.
func deleteOldest(t *testing.T, raw *zk.Conn, m *zklock.Mutex) {
	t.Helper()
	if err := raw.Delete(m.Path()+"/"+queue(t, raw, m)[0], -1); err != nil {
		t.Fatal(err)
	}
}

// queue lists the contenders in order of their sequence numbers.
func queue(t *testing.T, raw *zk.Conn, m *zklock.Mutex) []string {
	t.Helper()
	q := contenders(t, raw, m)
	slices.SortFunc(q, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	return q
}

// TestOperatorDeletesAWaitersNode: the one behind it must not take the absence
// for its turn, and the waiter itself goes to the tail.
func TestOperatorDeletesAWaitersNode(t *testing.T) {
	e := sharedEnsemble(t)
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	hooks, waiting := waits()
	var clients []*zklock.Client
	for range 3 {
		clients = append(clients, dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks)))
	}
	m := clients[0].Mutex("x")
	held := acquire(t, m)
	second := try(t, within(t), clients[1].Mutex("x"))
	receive(t, "the second to wait", waiting)
	third := try(t, within(t), clients[2].Mutex("x"))
	receive(t, "the third to wait", waiting)
	q := queue(t, raw, m)
	if len(q) != 3 {
		t.Fatalf("%v in the queue, want three", q)
	}
	if err := raw.Delete(m.Path()+"/"+q[1], -1); err != nil {
		t.Fatal(err)
	}
	second.pending(t)
	third.pending(t)
	if held.Err() != nil {
		t.Fatal(held.Err())
	}
	release(t, held)
	l := third.must(t)
	if l.Token().Compare(held.Token()) <= 0 {
		t.Errorf("token %v after %v", l.Token(), held.Token())
	}
	// The second has queued anew: then there are two nodes, and it still waits.
	eventually(t, "the second is in the queue again", func() bool { return len(contenders(t, raw, m)) == 2 })
	second.pending(t)
	release(t, l)
	last := second.must(t)
	if last.Token().Compare(l.Token()) <= 0 {
		t.Errorf("token %v after %v", last.Token(), l.Token())
	}
	release(t, last)
	eventually(t, "nobody is in the queue", func() bool { return len(contenders(t, raw, m)) == 0 })
}

// TestCloseWithHoldersAndWaiters: its holders know that they are none before
// anybody else gets in, and nothing of it stays.
func TestCloseWithHoldersAndWaiters(t *testing.T) {
	e := sharedEnsemble(t)
	hooks, waiting := waits()
	c, other := dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks)), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	held := acquire(t, c.Mutex("x"))
	ctx, cancel := held.Context(context.Background())
	defer cancel()
	var waiters []*attempt
	for range 5 {
		waiters = append(waiters, try(t, within(t), c.Mutex("x")))
		receive(t, "a waiter", waiting)
	}
	doneFirst := make(chan bool, 1)
	got := make(chan error, 1)
	go func() {
		l, err := other.Mutex("x").Acquire(within(t))
		doneFirst <- isDone(held)
		if err == nil {
			err = l.Release(context.Background())
		}
		got <- err
	}()
	receive(t, "the other client to wait", waiting)

	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, w := range waiters {
		if _, err := w.result(t); !errors.Is(err, zklock.ErrClosed) {
			t.Errorf("waiter: %v, want ErrClosed", err)
		}
	}
	wantLost(t, held)
	if !errors.Is(held.Err(), zklock.ErrClosed) || !errors.Is(context.Cause(ctx), zklock.ErrLost) {
		t.Errorf("the holder: %v, its context: %v, want ErrLost because of ErrClosed", held.Err(), context.Cause(ctx))
	}
	if err := receive(t, "the other client", got); err != nil {
		t.Error(err)
	}
	if !<-doneFirst {
		t.Error("the other client was in before the holder's Done was closed")
	}
	if _, err := c.Mutex("x").Acquire(within(t)); !errors.Is(err, zklock.ErrClosed) {
		t.Errorf("Acquire of a closed client: %v, want ErrClosed", err)
	}
	eventually(t, "nobody is in the queue", func() bool { return len(contenders(t, raw, c.Mutex("x"))) == 0 })
}

// TestSessionExpiresWhileWaiting: the wait goes on, with another session, at
// the tail.
func TestSessionExpiresWhileWaiting(t *testing.T) {
	e := sharedEnsemble(t)
	p := newProxy(t, e.Hosts())
	hooks, waiting := waits()
	holder, other := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	c := dial(t, p.Addr(), quick("session_timeout", "1500ms", "connect_timeout", "1m"))
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	m := holder.Mutex("x")
	held := acquire(t, m)
	cut := try(t, within(t), c.Mutex("x"))
	eventually(t, "both are in the queue", func() bool { return len(contenders(t, raw, m)) == 2 })
	node := queue(t, raw, m)[1]

	p.Blackhole(proxy.Both)
	behind := try(t, within(t), other.Mutex("x"))
	receive(t, "one to wait behind", waiting)
	eventually(t, "the session has expired", func() bool { return !slices.Contains(contenders(t, raw, m), node) })
	cut.pending(t)
	behind.pending(t)
	p.Heal()
	eventually(t, "it is in the queue again", func() bool { return len(contenders(t, raw, m)) == 3 })
	cut.pending(t)
	release(t, held)
	second := behind.must(t)
	cut.pending(t)
	release(t, second)
	last := cut.must(t)
	if last.Token().Compare(second.Token()) <= 0 {
		t.Errorf("token %v after %v", last.Token(), second.Token())
	}
	if st := c.Stats(); st.SessionsLost != 1 || st.SessionsOpened != 2 || st.Lost != 0 {
		t.Errorf("%+v, want one session lost and another one open", st)
	}
	release(t, last)
}

// TestEnsembleDown: connect_timeout is how long a call goes on without a
// session, whatever the ensemble does instead of serving.
func TestEnsembleDown(t *testing.T) {
	const limit = time.Second
	params := quick("connect_timeout", limit.String(), "pool_max_sessions", "1")
	e := sharedEnsemble(t)
	want := func(t *testing.T, what string, began time.Time, err error) {
		t.Helper()
		d := time.Since(began)
		if !errors.Is(err, zklock.ErrUnavailable) || errors.Is(err, zklock.ErrNotAcquired) {
			t.Errorf("%s: %v, want ErrUnavailable", what, err)
		}
		if d < limit || d > limit+atOnce {
			t.Errorf("%s: after %v, want connect_timeout=%v", what, d, limit)
		}
	}
	down := map[string]func(*proxy.Proxy){
		"refuses": (*proxy.Proxy).Cut,
		"silent":  func(p *proxy.Proxy) { p.Blackhole(proxy.Both) },
		"mute":    func(p *proxy.Proxy) { p.Stall(proxy.Down) },
	}
	for name, strike := range down {
		t.Run(name+" from the start", func(t *testing.T) {
			p := newProxy(t, e.Hosts())
			c := dial(t, p.Addr(), params)
			strike(p)
			for verb, call := range calls(c) {
				began := time.Now()
				want(t, verb, began, call(within(t)))
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit/4)
			defer cancel()
			if _, err := c.Mutex("x").Acquire(ctx); !errors.Is(err, zklock.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with a shorter context: %v, want ErrUnavailable and the context's error", err)
			}
			p.Heal()
			release(t, acquire(t, c.Mutex("x")))
		})
		t.Run(name+" later", func(t *testing.T) {
			p := newProxy(t, e.Hosts())
			c := dial(t, p.Addr(), params)
			l := acquire(t, c.Mutex("x"))
			release(t, l)
			strike(p)
			for verb, call := range calls(c) {
				began := time.Now()
				want(t, verb, began, call(within(t)))
			}
			p.Heal()
			release(t, acquire(t, c.Mutex("x")))
		})
	}
}

// TestOtherPeoplesDataIsNotWritten: a name may be somebody's znode already.
func TestOtherPeoplesDataIsNotWritten(t *testing.T) {
	e := sharedEnsemble(t)
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	c, other := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick())
	m := c.Mutex("theirs")
	const data = "somebody's settings"
	for _, node := range []struct{ path, data string }{{rootOf(t), "root's"}, {m.Path(), data}} {
		if _, err := raw.Create(node.path, []byte(node.data), 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	var last zklock.Token
	for range 3 {
		held := acquire(t, m)
		next := try(t, within(t), other.Mutex("theirs"))
		eventually(t, "two are in the queue", func() bool { return len(contenders(t, raw, m)) == 2 })
		next.pending(t)
		release(t, held)
		l := next.must(t)
		if held.Token().Compare(last) <= 0 || l.Token().Compare(held.Token()) <= 0 {
			t.Errorf("tokens %v, %v, %v do not grow", last, held.Token(), l.Token())
		}
		last = l.Token()
		release(t, l)
	}
	for path, want := range map[string]string{rootOf(t): "root's", m.Path(): data} {
		got, stat, err := raw.Get(path)
		if err != nil || string(got) != want || stat.Version != 0 {
			t.Errorf("%s has %q, version %d, %v, want %q as it was", path, got, stat.Version, err, want)
		}
	}
}
