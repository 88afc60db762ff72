package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/backlog"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A client with a log that is stuck can be closed after a loss. Its last lines then have some time, and no more.
func TestCloseWithAStuckLog(t *testing.T) {
	for name, end := range map[string]func(*zklock.Client) error{
		"Close": (*zklock.Client).Close,
		"Shutdown": func(c *zklock.Client) error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return c.Shutdown(ctx)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, log := memdriver.New(), corekit.NewStuckLog(t)
			c, err := zklock.OpenConnector(e.Connector(), zklock.WithLogger(log.Logger()))
			if err != nil {
				t.Fatal(err)
			}
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
			e.Expire(e.Sessions()[0])
			<-l.Done()
			log.Returns(t, name+" after a loss", 25*time.Second, func() {
				began := time.Now()
				if err := end(c); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if took := time.Since(began); took > backlog.Patience {
					t.Errorf("%s took %v, want at most %v", name, took, backlog.Patience)
				}
			})
			log.Read()
			synctest.Wait()
			if !strings.Contains(log.String(), "session lost") {
				t.Errorf("%s: the line on the loss was not written when the log was read: %q", name, log)
			}
		})
	}
}

// The acquisition that ends a circle of waits returns while the log is stuck, so that its caller releases what it
// holds.
func TestDeadlockWithAStuckLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, log := memdriver.New(), corekit.NewStuckLog(t)
		c := connect(t, e.Connector(), nil, zklock.WithLogger(log.Logger()))
		log.Returns(t, "a circle of waits", 40*time.Second, func() {
			wantVictims(t, circleIn(t, c), 1)
		})
	})
}

// A Release that the ensemble does not confirm returns when its context ends, while the log is stuck.
func TestReleaseWithAStuckLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, log := memdriver.New(), corekit.NewStuckLog(t)
		faults := about(faultdriver.First(5, faultdriver.After(1, faultdriver.Any(faultdriver.On(faultdriver.Multi, faultdriver.Drop()), faultdriver.On(faultdriver.Delete, faultdriver.Drop())))))
		c := connect(t, faultdriver.Wrap(e.Connector(), faults), nil, zklock.WithLogger(log.Logger()))
		l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		log.Returns(t, "Release", time.Second, func() {
			if err := l.Release(ctx); !errors.Is(err, zklock.ErrReleasePending) {
				t.Errorf("Release: %v", err)
			}
		})
	})
}

// Lines that do not fit are dropped and counted. The log has their number where they would stand.
func TestLinesOfAStuckLogAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const losses = 2 * backlog.Size
		e, log := memdriver.New(), corekit.NewStuckLog(t)
		c := connect(t, e.Connector(), nil, zklock.WithLogger(log.Logger()))
		lose := func() {
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
			e.Break("/zklock/x")
			_ = l.Verify(t.Context())
			synctest.Wait()
		}
		for range losses {
			lose()
		}
		dropped := uint64(losses - backlog.Size - 1) // one line is being written
		if n := c.Stats().LogDropped; n != dropped {
			t.Errorf("Stats counts %d lines as dropped, want %d", n, dropped)
		}
		log.Read()
		synctest.Wait()
		lose()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if n := backlog.Size + 3; len(lines) != n {
			t.Fatalf("%d lines, want %d", len(lines), n)
		}
		for i, line := range lines {
			want := "lock lost"
			if i == backlog.Size+1 {
				want = fmt.Sprintf("dropped=%d", dropped)
			}
			if !strings.Contains(line, want) {
				t.Errorf("line %d is %q, want %q", i, line, want)
			}
		}
	})
}

// slow is a handler that takes a while for each line, as a log on a busy disk does.
type slow struct {
	slog.Handler
	took time.Duration
}

func (h slow) Handle(ctx context.Context, r slog.Record) error {
	time.Sleep(h.took)
	return h.Handler.Handle(ctx, r)
}

// A client that is closed has written its lines, if the handler takes them in time.
func TestCloseWaitsForTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		var log locked
		c, err := zklock.OpenConnector(e.Connector(), zklock.WithLogger(slog.New(slow{slog.NewTextHandler(&log, nil), backlog.Patience / 2})))
		if err != nil {
			t.Fatal(err)
		}
		mustLock(t)(c.Mutex("x").Acquire(t.Context()))
		if err := c.Close(); err != nil { // the lock is lost by that
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "locks=1") {
			t.Errorf("Close has returned before the line on the lost lock was written: %q", log.String())
		}
	})
}
