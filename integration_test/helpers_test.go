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

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

// patience bounds every wait of a test. It does not test speed: a test that reaches it has
// found a hang.
const patience = 2 * time.Minute

// keys makes URL parameters from alternating keys and values.
func keys(kv ...string) url.Values {
	v := make(url.Values)
	for i := 0; i < len(kv); i += 2 {
		v.Set(kv[i], kv[i+1])
	}
	return v
}

// quickSession is the session timeout of quick.
const quickSession = 10 * time.Second

// quick returns URL parameters for ensembles with these tests' usual tick of 500ms.
func quick(kv ...string) url.Values {
	return keys(append([]string{"session_timeout", quickSession.String(), "tick_time", "500ms"}, kv...)...)
}

// roots are the roots in use, by test.
var roots struct {
	sync.Mutex
	of    map[testing.TB]string
	given int
}

// rootOf returns a root that no other test uses, and no other run of the same test.
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

// dial opens a client with the test's root. It is closed at the end of the test.
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

// dialRaw opens a plain ZooKeeper session, for the actions of operators and of other
// programs.
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

// within returns a context for one wait.
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

// attempt is a call of Acquire in a separate goroutine.
type attempt struct {
	lock *zklock.Lock
	err  error
	done chan struct{} // closed when lock and err are set
}

// try starts an attempt. It is cancelled at the end of the test.
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

// result waits for the attempt's end and returns its result.
func (p *attempt) result(t testing.TB) (*zklock.Lock, error) {
	t.Helper()
	receive(t, "the end of Acquire", p.done)
	return p.lock, p.err
}

// must waits for the attempt's end and fails the test if it has failed.
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

// waits returns hooks and a channel. The hooks send a lock's name there when a caller begins to
// wait.
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
		t.Fatalf("waited %v for %s", patience, what)
		panic("unreachable")
	}
}

var eventually = wait.Until

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

// repeating is a test that logs its errors once more at its end, behind the servers' logs: the end of a long output is what a reader sees.
type repeating struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

// repeatErrors has to come before the servers are started, so that its cleanup runs after theirs.
func repeatErrors(t testing.TB) *repeating {
	r := &repeating{TB: t}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the errors again:\n%s", strings.Join(r.errors, "\n"))
		}
	})
	return r
}

func (r *repeating) add(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, strings.TrimRight(text, "\n"))
}

func (r *repeating) Errorf(format string, args ...any) {
	r.TB.Helper()
	r.add(fmt.Sprintf(format, args...))
	r.TB.Errorf(format, args...)
}

func (r *repeating) Error(args ...any) {
	r.TB.Helper()
	r.add(fmt.Sprintln(args...))
	r.TB.Error(args...)
}

func (r *repeating) Fatal(args ...any) {
	r.TB.Helper()
	r.add(fmt.Sprintln(args...))
	r.TB.Fatal(args...)
}

func (r *repeating) Fatalf(format string, args ...any) {
	r.TB.Helper()
	r.add(fmt.Sprintf(format, args...))
	r.TB.Fatalf(format, args...)
}
