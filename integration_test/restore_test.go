package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/once"
)

// usage is one way to use a client whose ensemble loses transactions. use returns when the client
// works again, or cannot work any more. It closes began when it has its lock, or waits.
type usage struct {
	name string
	idle bool // it begins when the ensemble is there again
	use  func(ctx context.Context, u *used, began chan<- struct{}) error
}

// used is a client, and what it says by the end of its usage.
type used struct {
	client *zklock.Client
	log    lockedBuffer
	err    error
	took   time.Duration
}

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

// lines returns those that contain text.
func (b *lockedBuffer) lines(text string) (lines []string) {
	b.Lock()
	defer b.Unlock()
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// untilSure repeats an acquisition until it succeeds, or the client acquires no more locks.
func (u *used) untilSure(ctx context.Context) error {
	for {
		l, err := u.client.Mutex("again").Acquire(ctx)
		if err == nil {
			return l.Release(ctx)
		}
		if ctx.Err() != nil || zklock.Reason(err) == "token_regression" {
			return err
		}
	}
}

// usages are all of them.
var usages = []usage{
	{"idle, then Acquire", true, func(ctx context.Context, u *used, began chan<- struct{}) error {
		return u.untilSure(ctx)
	}},
	{"idle, Healthy only", true, func(ctx context.Context, u *used, began chan<- struct{}) error {
		for {
			if err := u.client.Healthy(); zklock.Reason(err) == "token_regression" {
				return err
			}
			if st := u.client.Stats(); st.SessionsLost > 0 && st.Open > 0 && u.client.Ping(ctx) == nil {
				return nil // on a new session
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}},
	{"holds", false, func(ctx context.Context, u *used, began chan<- struct{}) error {
		l, err := u.client.Mutex("held").Acquire(ctx)
		if err != nil {
			return err
		}
		close(began)
		<-l.Done()
		return u.untilSure(ctx)
	}},
	{"waits", false, func(ctx context.Context, u *used, began chan<- struct{}) error {
		go func() { // joined below
			for u.client.Stats().Waiting == 0 && ctx.Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			close(began)
		}()
		for {
			l, err := u.client.Mutex("blocked").Acquire(ctx)
			if err == nil {
				return l.Release(ctx)
			}
			if ctx.Err() != nil || zklock.Reason(err) == "token_regression" {
				return err
			}
		}
	}},
	{"leads", false, func(ctx context.Context, u *used, began chan<- struct{}) error {
		terms := 0
		return election.New(u.client, "leader").Run(ctx, func(ctx context.Context, t *election.Term) error {
			if terms++; terms > 1 {
				return election.ErrStop // it leads again
			}
			close(began)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}},
	{"once.Every", false, func(ctx context.Context, u *used, began chan<- struct{}) error {
		loop, stop := context.WithCancel(ctx)
		defer stop()
		runs, lost := 0, uint64(0)
		err := once.Every(loop, u.client, "job", time.Second, func(ctx context.Context, _ time.Time) error {
			if runs++; runs == 1 {
				lost = u.client.Stats().SessionsLost
				close(began)
			} else if u.client.Stats().SessionsLost > lost {
				stop() // it works again
			}
			return nil
		})
		if loop.Err() != nil && ctx.Err() == nil {
			return nil
		}
		return err
	}},
}

// each calls f for each server of an ensemble.
func each(t *testing.T, zk *ensemble.Ensemble, f func(*ensemble.Server) error) {
	t.Helper()
	for _, s := range zk.Servers() {
		if err := f(s); err != nil {
			t.Fatal(err)
		}
	}
}

// killAll ends all servers of an ensemble at once.
func killAll(t *testing.T, zk *ensemble.Ensemble) {
	each(t, zk, func(s *ensemble.Server) error { s.Kill(); return nil })
}

// startAll starts them, and returns when they serve.
func startAll(t *testing.T, zk *ensemble.Ensemble) {
	t.Helper()
	each(t, zk, (*ensemble.Server).Start)
	if err := zk.AwaitServing(); err != nil {
		t.Fatal(err)
	}
}

// TestEnsembleThatLosesTransactions sets an ensemble up again, or restores it, while clients use it. Each
// client works again, or says for good that tokens went back, also the one of which only Healthy is called.
func TestEnsembleThatLosesTransactions(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	for _, c := range []struct {
		name    string
		servers int
		empty   bool
		always  bool
	}{
		{"one server that is empty", 1, true, true},
		{"one server with an older state", 1, false, false},
		{"three servers that are empty", 3, true, false},
		{"three servers with an older state", 3, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.always {
				long.Test(t, "it is like the other cases")
			}
			testRestore(t, c.servers, c.empty)
		})
	}
}

func testRestore(t *testing.T, servers int, empty bool) {
	zk := ensemble.Start(t, ensemble.Config{Servers: servers})
	location := zk.URL("/locks", quick("session_timeout", "4s", "pool_max_sessions", "1"))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	blocker := openLogged(t, location, new(used))
	lockTimes(t, ctx, blocker, 1)
	backup := t.TempDir()
	folder := func(s *ensemble.Server) string { return filepath.Join(backup, fmt.Sprint(s.Index())) }
	if !empty {
		each(t, zk, (*ensemble.Server).Stop)
		each(t, zk, func(s *ensemble.Server) error { return s.Backup(folder(s)) })
		startAll(t, zk)
	}
	for {
		if _, err := blocker.Mutex("blocked").Acquire(ctx); err == nil {
			break
		} else if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
	all := make([]used, len(usages))
	var wg sync.WaitGroup
	var start time.Time
	started := make(chan struct{})
	for i, v := range usages {
		u := &all[i]
		u.client = openLogged(t, location, u)
		lockTimes(t, ctx, u.client, 20)
		began := make(chan struct{})
		wg.Go(func() {
			if v.idle {
				close(began)
				<-started
			}
			u.err = v.use(ctx, u, began)
			<-started
			u.took = time.Since(start)
		})
		<-began
	}
	lockTimes(t, ctx, blocker, 20)
	killAll(t, zk)
	each(t, zk, (*ensemble.Server).Wipe)
	if !empty {
		each(t, zk, func(s *ensemble.Server) error { return s.Restore(folder(s)) })
	}
	startAll(t, zk)
	start = time.Now()
	close(started)
	lockTimes(t, ctx, openLogged(t, location, new(used)), 1)
	t.Logf("%-20s works after %.2f s", "fresh client", time.Since(start).Seconds())
	wg.Wait()
	for i, v := range usages {
		u := &all[i]
		healthy, ping, regressed, lines := u.client.Healthy(), u.client.Ping(ctx), u.client.Stats().TokensRegressed, u.log.lines("tokens would go back")
		t.Logf("%-20s after %5.2f s: %v\n\tHealthy: %v\n\tPing: %v\n\tStats.TokensRegressed: %v\n\tlog: %q", v.name, u.took.Seconds(), u.err, healthy, ping, regressed, lines)
		switch back := zklock.Reason(u.err) == "token_regression"; {
		case !back && (u.err != nil || healthy != nil || ping != nil || regressed || len(lines) > 0):
			t.Errorf("%s: the client works, and not all is well", v.name)
		case back && (zklock.Reason(healthy) != "token_regression" || zklock.Reason(ping) != "token_regression" || !regressed || len(lines) != 1):
			t.Errorf("%s: the client acquires no more locks, and does not say so", v.name)
		}
	}
}

// TestEnsembleWithAHigherEpoch follows the runbook: an ensemble that was set up again gets a higher epoch
// before its first start. Then tokens go on, and a client that held a lock works again.
func TestEnsembleWithAHigherEpoch(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	zk := ensemble.Start(t, ensemble.Config{Servers: 3})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	u := new(used)
	u.client = openLogged(t, zk.URL("/locks", quick("session_timeout", "4s")), u)
	lockTimes(t, ctx, u.client, 20)
	held, err := u.client.Mutex("held").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	killAll(t, zk)
	each(t, zk, (*ensemble.Server).Wipe)
	each(t, zk, func(s *ensemble.Server) error { return s.SetEpoch(held.Token().Zxid>>32 + 1) })
	startAll(t, zk)
	<-held.Done()
	for {
		l, err := u.client.Mutex("held").Acquire(ctx)
		if errors.Is(err, zklock.ErrUnavailable) && ctx.Err() == nil {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("token %v after %v", l.Token(), held.Token())
		if l.Token().Compare(held.Token()) <= 0 {
			t.Errorf("token %v after %v", l.Token(), held.Token())
		}
		break
	}
	if err := u.client.Healthy(); err != nil {
		t.Error(err)
	}
}

// TestServersThatAreBehind: a server of three has lost its data, and later one lags behind what a client has
// seen. The client does not take that for a regression: it finds another server, and keeps its session and
// its lock.
func TestServersThatAreBehind(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	zk := ensemble.Start(t, ensemble.Config{Servers: 3, SyncLimit: 60})
	leader, err := zk.Leader()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	behind := zk.Followers()[0]
	link, err := proxy.New(leader.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	u := new(used)
	u.client = openLogged(t, ensemble.URL(link.Addr()+","+behind.Addr(), "/locks", quick("session_timeout", "10s", "pool_max_sessions", "1")), u)
	settle := func() { // on the leader, by the proxy
		t.Helper()
		wait.Until(t, "the client is connected to the leader", func() bool { return link.Conns() > 0 && u.client.Healthy() == nil })
		lockTimes(t, ctx, u.client, 5)
	}

	if err := behind.Stop(); err != nil {
		t.Fatal(err)
	}
	lockTimes(t, ctx, u.client, 20)
	held, err := u.client.Mutex("held").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := behind.Wipe(); err != nil {
		t.Fatal(err)
	}
	if err := behind.Start(); err != nil {
		t.Fatal(err)
	}
	if err := behind.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	link.Refuse()
	link.KillConns() // the client goes to the server that was empty
	lockTimes(t, ctx, u.client, 5)
	link.Heal()

	other, err := zklock.Open(ensemble.URL(leader.Addr(), "/locks", quick()))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lockTimes(t, ctx, other, 1)
	if err := behind.Stop(); err != nil { // the client goes back to the leader
		t.Fatal(err)
	}
	settle()
	if err := behind.Start(); err != nil {
		t.Fatal(err)
	}
	if err := behind.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	if err := zk.CutFromLeader(behind); err != nil {
		t.Fatal(err)
	}
	settle()
	const refused = "Refusing session request"
	for range 3 {
		link.KillConns()
		settle()
	}
	if !behind.Logged(refused) {
		t.Errorf("the server that lags has not refused the client:\n%s", behind.Log())
	}
	zk.Heal()
	if err := held.Verify(ctx); err != nil {
		t.Error(err)
	}
	st := u.client.Stats()
	if err := u.client.Healthy(); err != nil || st.TokensRegressed || st.SessionsLost != 0 || st.Lost != 0 {
		t.Errorf("Healthy %v, %+v; want nothing lost", err, st)
	}
	if err := held.Release(ctx); err != nil {
		t.Error(err)
	}
}

// openLogged opens a client that logs to u.
func openLogged(t *testing.T, location string, u *used) *zklock.Client {
	t.Helper()
	c, err := zklock.Open(location, zklock.WithLogger(slog.New(slog.NewTextHandler(&u.log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// lockTimes acquires and releases a lock n times.
func lockTimes(t *testing.T, ctx context.Context, c *zklock.Client, n int) {
	t.Helper()
	for range n {
		l, err := c.Mutex("warm").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
}
