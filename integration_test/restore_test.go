package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/once"
)

// usage is one way to use a client while the ensemble is set up anew. use returns when the client
// works again, or cannot work any more. began says when the usage had its lock, or waited.
type usage struct {
	name string
	use  func(ctx context.Context, u *used, began chan<- struct{}) error
}

// used is a client, and what it says by the end of its usage.
type used struct {
	client *zklock.Client
	log    lockedBuffer
	err    error
	took   time.Duration
}

type lockedBuffer struct {
	sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.Lock()
	defer b.Unlock()
	return b.Buffer.Write(p)
}

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
		if ctx.Err() != nil || errors.Is(err, zklock.ErrTokenRegression) {
			return err
		}
	}
}

var usages = []usage{
	{"idle, then Acquire", func(ctx context.Context, u *used, began chan<- struct{}) error {
		close(began)
		return u.untilSure(ctx)
	}},
	{"idle, Healthy only", func(ctx context.Context, u *used, began chan<- struct{}) error {
		close(began)
		for {
			if err := u.client.Healthy(); errors.Is(err, zklock.ErrTokenRegression) {
				return err
			}
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
				return fmt.Errorf("%w: Healthy: %v", ctx.Err(), u.client.Healthy())
			}
		}
	}},
	{"holds", func(ctx context.Context, u *used, began chan<- struct{}) error {
		l, err := u.client.Mutex("held").Acquire(ctx)
		if err != nil {
			return err
		}
		close(began)
		<-l.Done()
		return u.untilSure(ctx)
	}},
	{"waits", func(ctx context.Context, u *used, began chan<- struct{}) error {
		time.AfterFunc(time.Second, func() { close(began) })
		l, err := u.client.Mutex("blocked").Acquire(ctx)
		if err != nil {
			return err
		}
		return l.Release(ctx)
	}},
	{"leads", func(ctx context.Context, u *used, began chan<- struct{}) error {
		return election.New(u.client, "leader").Run(ctx, func(ctx context.Context, t *election.Term) error {
			close(began)
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}},
	{"once.Every", func(ctx context.Context, u *used, began chan<- struct{}) error {
		var first sync.Once
		return once.Every(ctx, u.client, "job", time.Second, func(ctx context.Context, _ time.Time) error {
			first.Do(func() { close(began) })
			return nil
		})
	}},
}

// restore is what happens to an ensemble that its clients use.
type restore struct {
	name    string
	servers int
	prepare func(t *testing.T, zk *ensemble.Ensemble) // before the locks
	lose    func(t *testing.T, zk *ensemble.Ensemble) // while all servers are down
}

func each(t *testing.T, zk *ensemble.Ensemble, f func(*ensemble.Server) error) {
	t.Helper()
	for _, s := range zk.Servers() {
		if err := f(s); err != nil {
			t.Fatal(err)
		}
	}
}

func wipe(t *testing.T, zk *ensemble.Ensemble) { each(t, zk, (*ensemble.Server).Wipe) }

// TestEnsembleThatLosesTransactions replaces the data of an ensemble while clients use it. Each client
// works again, or says for good that tokens went back, within a few session timeouts.
func TestEnsembleThatLosesTransactions(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	for _, servers := range []int{1, 3} {
		for _, empty := range []bool{true, false} {
			name := fmt.Sprintf("%d servers, empty=%v", servers, empty)
			t.Run(name, func(t *testing.T) { testRestore(t, servers, empty) })
		}
	}
}

func testRestore(t *testing.T, servers int, empty bool) {
	const timeout = 4 * time.Second
	zk := ensemble.Start(t, ensemble.Config{Servers: servers})
	location := zk.URL("/locks", quick("session_timeout", timeout.String(), "pool_max_sessions", "1", "connect_timeout", "10s"))
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	blocker := openLogged(t, location, new(used))
	lockTimes(t, ctx, blocker, 1)
	backup := t.TempDir()
	if !empty {
		each(t, zk, (*ensemble.Server).Stop)
		each(t, zk, func(s *ensemble.Server) error { return s.Backup(filepath.Join(backup, fmt.Sprint(s.Index()))) })
		each(t, zk, (*ensemble.Server).Start)
		if err := zk.AwaitServing(); err != nil {
			t.Fatal(err)
		}
	}
	for {
		if _, err := blocker.Mutex("blocked").Acquire(ctx); err == nil {
			break
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
		hold := ctx
		if strings.HasPrefix(v.name, "idle") {
			wg.Go(func() {
				<-started
				u.err = v.use(ctx, u, make(chan struct{}))
				u.took = time.Since(start)
			})
			continue
		}
		wg.Go(func() {
			u.err = v.use(hold, u, began)
			<-started
			u.took = time.Since(start)
		})
		<-began
	}
	lockTimes(t, ctx, blocker, 20)
	each(t, zk, func(s *ensemble.Server) error { s.Kill(); return nil })
	wipe(t, zk)
	if !empty {
		each(t, zk, func(s *ensemble.Server) error { return s.Restore(filepath.Join(backup, fmt.Sprint(s.Index()))) })
	}
	each(t, zk, (*ensemble.Server).Start)
	if err := zk.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	close(started)
	fresh := openLogged(t, location, new(used))
	lockTimes(t, ctx, fresh, 1)
	t.Logf("%-20s works after %.2f s", "fresh client", time.Since(start).Seconds())
	wg.Wait()
	for i, v := range usages {
		u := &all[i]
		pingCtx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		ping := u.client.Ping(pingCtx)
		cancel()
		t.Logf("%-20s after %5.2f s: %v\n\tHealthy: %v\n\tPing: %v\n\tlog: %q", v.name, u.took.Seconds(), u.err, u.client.Healthy(), ping, u.log.lines("went back"))
	}
}

// openLogged opens a client that logs to u.
func openLogged(t *testing.T, location string, u *used) *zklock.Client {
	t.Helper()
	if _, err := url.Parse(location); err != nil {
		t.Fatal(err)
	}
	c, err := zklock.Open(location, zklock.WithLogger(slog.New(slog.NewTextHandler(&u.log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func lockTimes(t *testing.T, ctx context.Context, c *zklock.Client, n int) {
	t.Helper()
	for range n {
		l, err := c.Mutex("warm").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		l.Release(ctx)
	}
}
