package zklock_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Helpers that the tests of internal packages use, too.
var (
	config     = corekit.Config
	connect    = corekit.Connect
	openConfig = corekit.OpenConfig
	plain      = corekit.Plain
	about      = corekit.About
	nodes      = corekit.Nodes
	later      = corekit.Later
)

// cost runs f and returns the requests to the ensemble during that time. Heartbeats are
// included: each is a transaction of one operation.
func cost(e *memdriver.Ensemble, f func()) memcontrol.Ops {
	synctest.Wait()
	before := memcontrol.Of(e).Ops()
	f()
	synctest.Wait()
	after := memcontrol.Of(e).Ops()
	return memcontrol.Ops{
		Creates: after.Creates - before.Creates, Deletes: after.Deletes - before.Deletes, Sets: after.Sets - before.Sets,
		Multis: after.Multis - before.Multis, MultiOps: after.MultiOps - before.MultiOps,
		Gets: after.Gets - before.Gets, Watches: after.Watches - before.Watches, Children: after.Children - before.Children,
		WatchChildren: after.WatchChildren - before.WatchChildren, WatchExists: after.WatchExists - before.WatchExists,
		Syncs: after.Syncs - before.Syncs, Events: after.Events - before.Events,
	}
}

func wantCost(t *testing.T, what string, got, want memcontrol.Ops) {
	t.Helper()
	if got != want {
		t.Errorf("%s cost %+v, want %+v", what, got, want)
	}
}

func mustLock(t *testing.T) func(l *zklock.Lock, err error) *zklock.Lock {
	t.Helper()
	return func(l *zklock.Lock, err error) *zklock.Lock {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func mustRelease(t *testing.T, l *zklock.Lock) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// soon returns the lock that a request should get without waiting for other holders.
// Those hold for a minute or more, so the test fails if it takes 10 seconds.
func soon(t *testing.T, what string, got <-chan *zklock.Lock) *zklock.Lock {
	t.Helper()
	select {
	case l := <-got:
		return l
	case <-time.After(10 * time.Second):
		t.Errorf("%s does not have the lock after 10s: it waits for a holder that it need not wait for", what)
		return <-got
	}
}

func open(t *testing.T, url string, opts ...zklock.Option) *zklock.Client {
	t.Helper()
	c, err := zklock.Open(url, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("name-", i)
	}
	return all
}

func must(t *testing.T, l *zklock.Lock, err error) *zklock.Lock {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// acquiring acquires in the background, and returns a channel that delivers the lock. An error
// fails the test, and closes the channel. A request that is never woken fails after an hour;
// otherwise the clock of the synctest bubble would run for ever.
func acquiring(t *testing.T, a zklock.Acquirer, ctx context.Context, opts ...zklock.AcquireOption) chan *zklock.Lock {
	t.Helper()
	got := make(chan *zklock.Lock, 1)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, time.Hour)
		defer cancel()
		l, err := a.Acquire(ctx, opts...)
		if err != nil {
			t.Errorf("acquire %s: %v", a.Name(), err)
			close(got)
			return
		}
		got <- l
	}()
	synctest.Wait()
	return got
}

// killAll ends all sessions, and their clients do not know it yet.
func killAll(e *memdriver.Ensemble) {
	for _, id := range e.Sessions() {
		e.KillSession(id)
	}
}

// none fails the test if the lock of a request that has to wait was acquired.
func none(t *testing.T, what string, got chan *zklock.Lock) {
	t.Helper()
	synctest.Wait()
	select {
	case <-got:
		t.Fatalf("%s acquired the lock, want it to wait", what)
	default:
	}
}

// inDialect opens a client that uses a dialect.
func inDialect(t *testing.T, c driver.Connector, dialect string) *zklock.Client {
	t.Helper()
	client, err := zklock.OpenConfig(zklock.Config{Connector: c, Dialect: dialect})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// ended returns a channel that receives the time when a lock's Done is closed.
func ended(l *zklock.Lock) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() { <-l.Done(); at <- time.Now() }()
	return at
}

// locked is a writer for a log that several goroutines write and read.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *locked) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

func (w *locked) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.String()
}

func (w *locked) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Reset()
}
