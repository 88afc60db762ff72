package integration_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/integration_test/ensemble"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

// patience bounds everything a test waits for. It is no expectation about
// speed: a test that meets it has found a hang.
const patience = 2 * time.Minute

// keys makes URL parameters of key and value in turn.
func keys(kv ...string) url.Values {
	v := make(url.Values)
	for i := 0; i < len(kv); i += 2 {
		v.Set(kv[i], kv[i+1])
	}
	return v
}

// quick are the keys for ensembles with this project's usual tick of 500ms.
func quick(kv ...string) url.Values {
	return keys(append([]string{"session_timeout", "10s", "tick_time", "500ms"}, kv...)...)
}

// roots are those in use, by test.
var roots struct {
	sync.Mutex
	of    map[testing.TB]string
	given int
}

// rootOf is a root that no other test uses, nor another run of the same one.
func rootOf(t testing.TB) string {
	roots.Lock()
	defer roots.Unlock()
	root, ok := roots.of[t]
	if !ok {
		if roots.of == nil {
			roots.of = make(map[testing.TB]string)
		}
		roots.given++
		root = fmt.Sprintf("/%s-%d", strings.ReplaceAll(t.Name(), "/", "_"), roots.given)
		roots.of[t] = root
		t.Cleanup(func() {
			roots.Lock()
			defer roots.Unlock()
			delete(roots.of, t)
		})
	}
	return root
}

// dial opens a client of its own root, which is closed with the test.
func dial(t testing.TB, hosts string, params url.Values, opts ...zklock.Option) *zklock.Client {
	t.Helper()
	opts = append([]zklock.Option{zklock.WithLogger(searchedLog()), zklock.WithHooks(searchedHooks())}, opts...)
	c, err := zklock.Open(withCanary(ensemble.URL(hosts, rootOf(t), params)), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		searchStats(c)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// dialRaw opens a plain ZooKeeper session, for what operators and other people
// do.
func dialRaw(t testing.TB, hosts string, timeout time.Duration) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(strings.Split(hosts, ","), timeout, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for conn.State() != zk.StateHasSession {
		select {
		case <-events:
		case <-limit.C:
			t.Fatalf("no session with %s: %v", hosts, conn.State())
		}
	}
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// within is a context for one wait.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func acquire(t testing.TB, a zklock.Acquirer) *zklock.Lock {
	t.Helper()
	l, err := a.Acquire(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t testing.TB, l *zklock.Lock) {
	t.Helper()
	if err := l.Release(within(t)); err != nil {
		t.Fatal(err)
	}
}

// attempt is an Acquire in a goroutine of its own.
type attempt struct {
	lock *zklock.Lock
	err  error
	done chan struct{} // closed when lock and err are set
}

// try starts an attempt that ends with the test at the latest.
func try(t testing.TB, ctx context.Context, a zklock.Acquirer, opts ...zklock.AcquireOption) *attempt {
	ctx, cancel := context.WithCancel(ctx)
	p := &attempt{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.lock, p.err = a.Acquire(ctx, opts...)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.done
	})
	return p
}

// result waits for the attempt's end.
func (p *attempt) result(t testing.TB) (*zklock.Lock, error) {
	t.Helper()
	receive(t, "the end of Acquire", p.done)
	return p.lock, p.err
}

// must waits for the attempt's success.
func (p *attempt) must(t testing.TB) *zklock.Lock {
	t.Helper()
	l, err := p.result(t)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pending fails the test if the attempt has ended.
func (p *attempt) pending(t testing.TB) {
	t.Helper()
	select {
	case <-p.done:
		t.Fatalf("Acquire ended with %v, %v, want it to wait", p.lock, p.err)
	default:
	}
}

// waits are hooks that tell of everybody who begins to wait, by name.
func waits() (zklock.Hooks, <-chan string) {
	names := make(chan string, 1<<14)
	return zklock.Hooks{Wait: func(ctx context.Context, e zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
		names <- e.Name
		return ctx, nil
	}}, names
}

// receive waits for a channel.
func receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case v := <-ch:
		return v
	case <-limit.C:
		t.Fatalf("waited %v for %s, in vain", patience, what)
		panic("unreachable")
	}
}

// eventually polls a condition until it holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited %v until %s, in vain", patience, what)
		}
	}
}

// isDone reports whether a lock has ended.
func isDone(l *zklock.Lock) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// contenders lists the queue nodes of a lock.
func contenders(t testing.TB, conn *zk.Conn, m *zklock.Mutex) []string {
	t.Helper()
	names, _, err := conn.Children(m.Path())
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return names
}
