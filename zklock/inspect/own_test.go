package inspect_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/inspect"
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

// An open page shows that its client acquires nothing, once it knows.
func TestOpenPageShowsTheFaultOfItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		restore := memcontrol.Of(w.ensemble).Backup()
		for range 20 {
			if err := w.hold(w.web.Mutex("x"), "").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		page := followed(t, w.web, "prefix=")
		time.Sleep(time.Second)
		if text := page(); strings.Contains(text, "acquires no lock") {
			t.Errorf("before:\n%s", text)
		}
		restore(time.Second)
		time.Sleep(5 * time.Minute)
		if _, err := w.web.Mutex("x").Acquire(t.Context()); zklock.Reason(err) != "token_regression" {
			t.Fatalf("%v, want the reason token_regression", err)
		}
		time.Sleep(time.Minute)
		if text := page(); !strings.Contains(text, "acquires no lock: ") || !strings.Contains(text, "went backwards") {
			t.Errorf("afterwards:\n%s", text)
		}
	})
}
