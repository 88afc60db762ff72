package inspect_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/inspect"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// followed begins a stream of events of a handler, which goes on until the test ends.
func followed(t *testing.T, c *zklock.Client, query string) (page func() string) {
	t.Helper()
	h := inspect.Handler(c)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/api/events?"+query, nil).WithContext(ctx))
	}()
	t.Cleanup(func() {
		leave()
		<-left
	})
	return func() string {
		t.Helper()
		synctest.Wait()
		return get(t, h, "/?"+query).Body.String()
	}
}

// reader opens a client that does not create the root.
func (w *world) reader() *zklock.Client {
	w.Helper()
	c, err := zklock.OpenConfig(zklock.Config{Connector: w.ensemble.Connector(), RequireRoot: true}, zklock.WithLogger(nil))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = c.Close() })
	return c
}

// Without a root no name is in use. That is not an error, and the page of a name shows the
// first holder when there is one.
func TestNoRootIsAnEmptyList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.reader()
		h := inspect.Handler(c)
		for path, want := range map[string]string{
			"/": "No name is in use", "/?name=x": "No client holds this name",
			"/api/locks": `{"locks":[],"more":false}`, "/api/locks/x": `"contenders":[]`, "/?format=text": "0 names, 0 waiting processes",
		} {
			if rec := get(t, h, path); rec.Code != 200 || !strings.Contains(rec.Body.String(), want) || strings.Contains(rec.Body.String(), "create_root") {
				t.Errorf("%s: status %d, %s", path, rec.Code, rec.Body)
			}
		}
		page := followed(t, c, "name=x")
		if text := page(); !strings.Contains(text, "No client holds this name") {
			t.Errorf("without a root:\n%s", text)
		}
		w.hold(w.web.Mutex("x"), "row 0")
		time.Sleep(3 * time.Second) // the root is looked for every two seconds
		if text := page(); !strings.Contains(text, "row 0") {
			t.Errorf("the page does not show the holder:\n%s", text)
		}
	})
}

// An error that ends the events of a name does not stay once its reason is gone.
func TestNameIsFollowedAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.web.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		s, err := w.ensemble.Connector().Connect(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(context.Background())
		locked := []driver.ACL{{Perms: driver.PermAll, Scheme: "digest", ID: "other:x"}}
		if _, err := s.Create(t.Context(), "/zklock/x", []byte("zklock"), driver.Persistent, locked); err != nil {
			t.Fatal(err)
		}
		page := followed(t, w.web, "name=x")
		if text := page(); !strings.Contains(text, `role="alert"`) {
			t.Errorf("without rights:\n%s", text)
		}
		if err := s.Delete(t.Context(), "/zklock/x", -1); err != nil {
			t.Fatal(err)
		}
		w.hold(w.jobs.Mutex("x"), "row 0")
		time.Sleep(3 * time.Second)
		if text := page(); !strings.Contains(text, "row 0") {
			t.Errorf("the page does not show the holder:\n%s", text)
		}
	})
}

// An outage ends while the list's last reading waits for a connection, or right after it has failed: the
// next readings begin after the usual two seconds, however long that one took.
func TestListIsReadSoonAfterAnOutage(t *testing.T) {
	for _, length := range []time.Duration{15 * time.Second, 20 * time.Second, 33 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.hold(w.jobs.Mutex("orders/42"), "refund 7")
			page := followed(t, w.web, "")
			if text := page(); !strings.Contains(text, "orders/42") {
				t.Fatalf("before an outage: %s", text)
			}
			w.ensemble.Partition(memdriver.AroundClients(0).Reset())
			time.Sleep(length)
			if text := page(); !strings.Contains(text, `data-error="1"`) || !strings.Contains(text, "orders/42") {
				t.Errorf("in an outage: %s", text)
			}
			w.ensemble.Heal()
			time.Sleep(5 * time.Second)
			if text := page(); !strings.Contains(text, `data-silent="0" data-error=""`) {
				t.Errorf("five seconds after an outage of %v: %s", length, text)
			}
			w.hold(w.jobs.Mutex("orders/43"), "refund 8")
			time.Sleep(5 * time.Second)
			if text := page(); !strings.Contains(text, "orders/43") {
				t.Errorf("ten seconds after an outage of %v: %s", length, text)
			}
		})
	}
}

// The page says since when the ensemble has not answered: since the first question without an answer, or
// the last answer if it followed the ensemble then. What happened when no page was open is not known.
func TestSilenceBeginsWithAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		h := inspect.Handler(w.web)
		silence := func() time.Duration {
			t.Helper()
			text := get(t, h, "/?format=text").Body.String()
			_, since, found := strings.Cut(text, "no answer from the ensemble since ")
			at, err := time.Parse(time.RFC3339, strings.Fields(since + " -")[0])
			if !found || err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			return time.Since(at).Round(2 * time.Second)
		}
		for range 2 { // the second outage is like the first
			w.hold(w.jobs.Mutex("orders/42"), "refund 7")
			if text := get(t, h, "/?format=text").Body.String(); !strings.Contains(text, "orders/42") || strings.Contains(text, "no answer") {
				t.Fatalf("no outage: %s", text)
			}
			time.Sleep(3 * time.Hour)
			w.ensemble.Partition(memdriver.AroundClients(0).Reset())
			time.Sleep(time.Minute)
			if d := silence(); d != 10*time.Second {
				t.Errorf("silent for %v, want connect_timeout, the length of the first question", d)
			}
			if d := silence(); d != 20*time.Second {
				t.Errorf("silent for %v after the second question, want 20s", d)
			}
			w.ensemble.Heal()
			time.Sleep(time.Minute)
		}
	})
}
