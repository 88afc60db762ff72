package main

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// During an outage a replica is not ready, and lives. When its ensemble has lost transactions, it is neither.
func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		restore := memcontrol.Of(e).Backup()
		client, err := zklock.OpenConnector(e.Connector())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		h := routes(client, new(shop))
		answers := func(when string, wantReady, wantLive int) {
			t.Helper()
			ready, live := httptest.NewRecorder(), httptest.NewRecorder()
			h.ServeHTTP(ready, httptest.NewRequest("GET", "/ready", nil))
			h.ServeHTTP(live, httptest.NewRequest("GET", "/live", nil))
			t.Logf("%s: /ready %d %s/live %d %s", when, ready.Code, ready.Body, live.Code, live.Body)
			if ready.Code != wantReady || live.Code != wantLive {
				t.Errorf("%s: /ready %d and /live %d, want %d and %d", when, ready.Code, live.Code, wantReady, wantLive)
			}
		}
		for range 20 {
			paid := httptest.NewRecorder()
			if h.ServeHTTP(paid, httptest.NewRequest("POST", "/orders/42/pay", nil)); paid.Code != 200 {
				t.Fatal(paid.Body)
			}
		}
		answers("at first", 200, 200)
		restore(time.Minute)
		time.Sleep(40 * time.Second)
		answers("in the outage", 503, 200)
		time.Sleep(30 * time.Second)
		for range 3 { // the probes open a session
			answers("after the restore", 503, 200)
			time.Sleep(time.Second)
			if client.Stats().TokensRegressed {
				break
			}
		}
		answers("after the restore", 503, 503)
	})
}
