package zklock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// logged runs f with a default logger of its own, and returns the lines that it got.
func logged(t *testing.T, f func()) []string {
	t.Helper()
	var log locked
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	defer slog.SetDefault(before)
	f()
	text := strings.TrimSpace(log.String())
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// By default losses are logged to slog's default logger, also one that was set later: one
// line for a lock, and one for a session with all its locks.
func TestLossesAreLoggedByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c := connect(t, e.Connector(), nil)
		other := connect(t, e.Connector(), nil)
		lock := func(name string) *zklock.Lock {
			return mustLock(t)(c.Mutex(name).Acquire(context.Background()))
		}
		l := lock("orders/42")
		found, err := other.Contenders(t.Context(), "orders/42")
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprintf("%#x", found[0].Session)
		lines := logged(t, func() {
			if err := other.Break(t.Context(), "orders/42", found[0].Node); err != nil {
				t.Fatal(err)
			}
			_ = l.Verify(t.Context())
			synctest.Wait()
		})
		want := `level=WARN msg="zklock: lock lost" session=` + id + ` cause="` + zklock.ErrNodeDeleted.Error() + `" locks=1 names=orders/42`
		if len(lines) != 1 || lines[0] != want {
			t.Errorf("a deleted node: %q, want %q", lines, want)
		}
		for i := range 1000 {
			lock(fmt.Sprintf("orders/%d", i))
		}
		lines = logged(t, func() {
			e.Expire(found[0].Session)
			time.Sleep(time.Minute)
			synctest.Wait()
		})
		if len(lines) != 1 || !strings.HasPrefix(lines[0], `level=WARN msg="zklock: session lost, and its locks with it; another session takes its place" session=`+id+` cause=`) ||
			!strings.Contains(lines[0], ` locks=1000 names="orders/`) || strings.Count(lines[0], "orders/") != 5 || !strings.HasSuffix(lines[0], ` ..."`) {
			t.Errorf("a lost session: %d lines, want one with five of 1000 names: %.1000q", len(lines), lines)
		}
	})
}

// WithLogger replaces the default logger, and WithLogger(nil) turns it off. Debug lines go to
// a logger of the program only.
func TestLoggersOfTheProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mine locked
		for name, c := range map[string]struct {
			opts           []zklock.Option
			defaults, mine int
		}{
			"none": {nil, 1, 0},
			"nil":  {[]zklock.Option{zklock.WithLogger(nil)}, 0, 0},
			"mine": {[]zklock.Option{zklock.WithLogger(slog.New(slog.NewTextHandler(&mine, nil)))}, 0, 1},
		} {
			mine.Reset()
			lines := logged(t, func() {
				e := memdriver.New()
				client, err := zklock.OpenConnector(e.Connector(), c.opts...)
				if err != nil {
					t.Fatal(err)
				}
				mustLock(t)(client.Mutex("x").Acquire(t.Context()))
				if err := client.Close(); err != nil {
					t.Fatal(err)
				}
			})
			if got := strings.Count(mine.String(), "\n"); len(lines) != c.defaults || got != c.mine {
				t.Errorf("%s: %d lines to the default logger and %d to the program's, want %d and %d:\n%q\n%s", name, len(lines), got, c.defaults, c.mine, lines, mine.String())
			}
		}
	})
}

// TestSlowReconnectIsLogged: when a session has been without a connection for longer than an
// interval of its heartbeats, one line says so. A shorter time is not worth a line.
func TestSlowReconnectIsLogged(t *testing.T) {
	for away, lines := range map[time.Duration]int{0: 0, 2 * time.Second: 1} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			defer e.Close()
			var log locked
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
