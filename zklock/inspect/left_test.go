package inspect_test

import (
	"context"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/fips"
	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/inspect"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A session leaves a server that has fallen silent, or a connection that is forgotten: the page says so for ten minutes, its events
// bring it there at once, and the figures have it.
func TestDepartureIsShown(t *testing.T) {
	for what, c := range map[string]struct {
		forgotten bool
		says      string
	}{
		"silent":    {false, `left 10\.0\.0\.\d:2181, silent for 1\.[2-9]s; no lock was lost`},
		"forgotten": {true, `left a connection to 10\.0\.0\.\d:2181, silent for 1[2-4](\.\d)?s while the server answers on others; no lock was lost`},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3), memdriver.WithTickTime(2*time.Second), memdriver.WithSyncLimit(5), memdriver.WithLatency(time.Millisecond))
				fips.SkipWire(t)
				n := wire.New(e)
				t.Cleanup(func() { n.Close(); _ = e.Close() })
				var seat atomic.Value // the newest event of the session
				client, err := zklock.OpenConfig(zklock.Config{
					// Not at the leader, without which nothing is committed for a while.
					Connector:       n.Connector("", wire.Addr((e.Leader()+1)%3), wire.Addr((e.Leader()+2)%3)),
					PoolMaxSessions: 1,
				}, zklock.WithLogger(nil), zklock.WithHooks(zklock.Hooks{Session: func(e zklock.SessionEvent) { seat.Store(e) }}))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = client.Close() })
				l, err := client.Mutex("orders/42").Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				h := inspect.Handler(client)
				says := regexp.MustCompile(c.says + `, (<time datetime="[^"]+">)?\d+s(</time>)? ago`)
				shown := func(want bool) {
					t.Helper()
					for _, url := range []string{"/", "/?name=orders/42", "/?format=text"} {
						if body := get(t, h, url).Body.String(); says.MatchString(body) != want || strings.Contains(body, "no lock was lost") != want {
							t.Errorf("%s has %q: %v, want %v:\n%s", url, says, !want, want, body)
						}
					}
				}
				ctx, leave := context.WithCancel(t.Context())
				rec, ended := httptest.NewRecorder(), make(chan struct{})
				go func() {
					defer close(ended)
					h.ServeHTTP(rec, httptest.NewRequestWithContext(ctx, "GET", "/api/events", nil))
				}()
				<-time.After(20 * time.Second)
				synctest.Wait()
				shown(false)
				if text := client.Stats().Departure.String(); text != "" {
					t.Errorf("%q before the departure", text)
				}
				before := len(rec.Body.String())

				at := seat.Load().(zklock.SessionEvent)
				if c.forgotten {
					n.Of(at.ID).Silence(wire.Down)
				} else {
					for i := range 3 {
						if wire.Addr(i) == at.Server {
							n.Stopped(i, true)
							e.Partition(memdriver.AroundServer(i), memdriver.AroundClients(i))
						}
					}
				}
				<-time.After(25 * time.Second)
				synctest.Wait()
				shown(true)
				if events := rec.Body.String()[before:]; !regexp.MustCompile(`(^|\n\n)data: [1-9]`).MatchString(events) { // others are about silence
					t.Errorf("no event makes the page read that:\n%s", events)
				}
				d := client.Stats().Departure
				if client.Stats().Departures != 1 || d.From != at.Server || d.To == "" || d.Silent == 0 || d.Forgotten != c.forgotten || time.Since(d.At) > 25*time.Second || !l.Valid() {
					t.Errorf("%+v, and the lock is valid: %v", d, l.Valid())
				}
				if state, is := seat.Load().(zklock.SessionEvent); !is || state.State != driver.Connected {
					t.Errorf("%+v, want the session to be connected", state)
				}
				<-time.After(10 * time.Minute)
				shown(false)
				leave()
				<-ended
			})
		})
	}
}
