package zklock_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestSuspensionIsTheCause: a lock that was lost because its machine was suspended says so,
// whether the caller or the session notices the loss first, and its cause still matches
// ErrLeaseOver. After a suspension that the lock has survived, an outage is the cause.
func TestSuspensionIsTheCause(t *testing.T) {
	const because = ", because the machine was suspended for 12s"
	for what, c := range map[string]struct {
		lose func(t *testing.T, e *memdriver.Ensemble, l *zklock.Lock) error
		want string
	}{
		"the caller notices it": {func(t *testing.T, _ *memdriver.Ensemble, l *zklock.Lock) error {
			lease.AddSuspended(12 * time.Second)
			return l.Release(t.Context())
		}, because},
		"the session notices it": {func(t *testing.T, _ *memdriver.Ensemble, l *zklock.Lock) error {
			lease.AddSuspended(12 * time.Second)
			<-l.Done()
			return l.Err()
		}, because},
		"an outage": {func(t *testing.T, e *memdriver.Ensemble, l *zklock.Lock) error {
			lease.AddSuspended(2 * time.Second)
			time.Sleep(20 * time.Second)
			e.Partition(memdriver.AroundSession(e.Sessions()[0]))
			<-l.Done()
			return l.Err()
		}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				defer e.Close()
				var log bytes.Buffer
				c1 := connect(t, e.Connector(), nil, zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				l := mustLock(t)(c1.Mutex("x").Acquire(t.Context()))
				time.Sleep(time.Minute)
				err := c.lose(t, e, l)
				want := "lease ran out before a quorum renewed it" + c.want
				if !errors.Is(err, zklock.ErrLost) || !errors.Is(err, zklock.ErrLeaseOver) || !strings.HasSuffix(err.Error(), want) {
					t.Errorf("the loss is %q, which matches ErrLeaseOver: %v; want %q", err, errors.Is(err, zklock.ErrLeaseOver), want)
				}
				e.Heal()
				synctest.Wait()
				if lines := log.String(); strings.Count(lines, "\n") != 1 || !strings.Contains(lines, `cause="`+want+`"`) {
					t.Errorf("the log is %q, want one line with the cause %q", lines, want)
				}
			})
		})
	}
}

// TestSlowReconnectIsLogged: when a session has been without a connection for longer than an
// interval of its heartbeats, one line says so. A shorter time is not worth a line.
func TestSlowReconnectIsLogged(t *testing.T) {
	for away, lines := range map[time.Duration]int{0: 0, 2 * time.Second: 1} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			defer e.Close()
			var log bytes.Buffer
			c := connect(t, e.Connector(), nil, zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			l := mustLock(t)(c.Mutex("x").Acquire(t.Context()))
			id := e.Sessions()[0]
			time.Sleep(20 * time.Second)
			for range 3 {
				e.Partition(memdriver.AroundSession(id))
				e.KillConnection(id)
				time.Sleep(away)
				e.Heal()
				time.Sleep(20 * time.Second)
			}
			synctest.Wait()
			if n := c.Stats().Reconnects; n != 3 || l.Err() != nil {
				t.Fatalf("%d reconnects, want 3, and the lock: %v", n, l.Err())
			}
			want := fmt.Sprintf(`level=WARN msg="zklock: connected again, no lock was lost" session=%#x disconnected=%v`, id, away)
			if got := log.String(); strings.Count(got, "\n") != 3*lines || strings.Count(got, want) != 3*lines {
				t.Errorf("after three times %v without a connection the log is %q, want %d lines with %q", away, got, 3*lines, want)
			}
			mustRelease(t, l)
		})
	}
}
