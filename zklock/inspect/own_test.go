package inspect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/inspect"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A client that acquires nothing shows it in the first line of its page, although the ensemble is well and no
// name is in use: its servers were emptied, and have its old transactions no more. An open page gets an event.
func TestClientThatAcquiresNothingShowsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		restore := memcontrol.Of(w.ensemble).Backup()
		for range 20 {
			if err := w.hold(w.web.Mutex("x"), "").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		h := inspect.Handler(w.web)
		second := func(query string) string { return strings.Split(get(t, h, query).Body.String(), "\n")[1] }
		if got := second("/?format=text"); got != "the process of this page holds 0 locks" {
			t.Errorf("a client that is well: %q", got)
		}
		restore(time.Second)
		time.Sleep(5 * time.Minute)
		w.web.Healthy() // opens a session, as a probe does
		time.Sleep(time.Second)
		if _, err := w.web.Mutex("x").Acquire(t.Context()); zklock.Reason(err) != "token_regression" {
			t.Fatalf("%v, want the reason token_regression", err)
		}
		for _, query := range []string{"/?format=text", "/?format=text&name=x", "/?format=text&host=web-3"} {
			if got := second(query); !strings.Contains(got, "the process of this page acquires no lock: ") || !strings.Contains(got, "went backwards") {
				t.Errorf("%s: %q", query, got)
			}
		}
		if text := get(t, h, "/").Body.String(); !strings.Contains(text, `<p class="own error" role="alert">the process of this page acquires no lock: `) {
			t.Errorf("the page:\n%s", text)
		}
		if text, err := json.Marshal(w.web.Stats()); err != nil || !strings.HasPrefix(string(text), `{"Problem":"the ensemble's transaction ids went backwards`) { // as with expvar
			t.Errorf("Stats, %v: %s", err, text)
		}
	})
}

// A client of two sessions that has lost the connection of one acquires the names of the other, and is healthy. The first line
// of its page shows it.
func TestSessionWithoutAConnectionIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := 0; w.web.Stats().Open < 2; i++ {
			w.hold(w.web.Mutex(fmt.Sprint(i)), "")
		}
		h := inspect.Handler(w.web)
		first := func() string { return strings.Split(get(t, h, "/?format=text").Body.String(), "\n")[1] }
		well := first()
		if strings.Contains(well, "connection") {
			t.Errorf("a client that is well: %q", well)
		}
		one := memdriver.AroundSession(w.ensemble.Sessions()[0]).Reset()
		w.ensemble.Partition(one)
		time.Sleep(time.Second)
		if got := first(); w.web.Healthy() != nil || got != well+"; 1 of its 2 sessions without a connection: the names on such a session wait" {
			t.Errorf("with one session: %q, and Healthy is %v", got, w.web.Healthy())
		}
		w.ensemble.Heal()
		time.Sleep(time.Second)
		if got := first(); got != well {
			t.Errorf("after a reconnect: %q, want %q", got, well)
		}
	})
}

// An open page gets an event when its client fails, although each name is as before.
func TestFaultOfTheClientIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		restore := memcontrol.Of(w.ensemble).Backup()
		for range 20 {
			if err := w.hold(w.web.Mutex("x"), "").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		h, events := inspect.Handler(w.web), httptest.NewRecorder()
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() {
			defer close(left)
			h.ServeHTTP(events, httptest.NewRequest("GET", "/api/events?prefix=", nil).WithContext(ctx))
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		page, before := get(t, h, "/?prefix=").Body.String(), events.Body.Len()
		if strings.Contains(page, "acquires no lock") {
			t.Errorf("before:\n%s", page)
		}
		restore(time.Second)
		time.Sleep(5 * time.Minute)
		if _, err := w.web.Mutex("x").Acquire(t.Context()); zklock.Reason(err) != "token_regression" {
			t.Fatalf("%v, want the reason token_regression", err)
		}
		if page = get(t, h, "/?prefix=").Body.String(); !strings.Contains(page, "acquires no lock: ") || !strings.Contains(page, "went backwards") {
			t.Errorf("afterwards:\n%s", page)
		}
		leave()
		<-left
		if later := "\n\n" + events.Body.String()[before:]; !strings.Contains(later, "\n\ndata: ") {
			t.Errorf("after the fault, the page got no event but those of the silence: %q", later)
		}
	})
}
