package inspect_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/inspect"
)

// A page that has been read can be filtered at once, although the next reading of its feed takes long.
func TestFilterDoesNotWaitForTheNextReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hold(w.jobs.Mutex("orders/42"), "pay")
		slow := faultdriver.On(faultdriver.Children, faultdriver.If("always", func(faultdriver.Op) bool { return true }, faultdriver.DelayReply(4*time.Second)))
		c, err := zklock.OpenConfig(zklock.Config{Connector: faultdriver.Wrap(w.ensemble.Connector(), slow), ConnectTimeout: time.Minute, SessionTimeout: time.Hour}, zklock.WithLogger(nil))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		h := inspect.Handler(c)
		began := time.Now()
		get(t, h, "/")
		if took := time.Since(began); took < 8*time.Second {
			t.Fatalf("the first reading took %v: it is not slow", took)
		}
		ctx, leave := context.WithCancel(t.Context())
		var pages sync.WaitGroup
		defer pages.Wait()
		defer leave()
		pages.Go(func() {
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/api/events?prefix=", nil).WithContext(ctx))
		})
		time.Sleep(time.Second)
		began = time.Now()
		text := get(t, h, "/?format=text&q=ORD").Body.String()
		if took := time.Since(began); took > 0 || !strings.Contains(text, "orders/42") {
			t.Errorf("the filter took %v, want nothing:\n%s", took, text)
		}
		// What the page was made of is not shown for longer than the first reading of the feed takes.
		w.hold(w.jobs.Mutex("orders/43"), "pay")
		time.Sleep(30 * time.Second)
		if text := get(t, h, "/?format=text").Body.String(); !strings.Contains(text, "orders/43") {
			t.Errorf("after 30 s:\n%s", text)
		}
	})
}

// The page and its text say whose locks they show, and in which zone their times of day are; a long label moves
// no column away, and no text of a client changes the direction of the page.
func TestFormsOfThePage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hold(w.web.Mutex("orders/\u202e42"), strings.Repeat("label ", 40)+"\u202e")
		w.wait(w.jobs.Mutex("orders/\u202e42"), "a\u202eb")
		h := inspect.Handler(w.web)
		name := "?name=" + url.QueryEscape("orders/\u202e42")
		for query, wants := range map[string][]string{
			"/":                       {"<title>locks of /zklock</title>", `<p id="client">/<wbr>zklock</p>`, "as of 00:00:00 UTC", "1 waiting process,", `orders/<wbr>\u202e42`},
			"/" + name:                {`<title>orders/\u202e42 - locks of /zklock</title>`, `a\u202eb`, "What holds it up"},
			"/?host=web-3":            {"<title>web-3 - locks of /zklock</title>"},
			"/?q=ord":                 {"1 name in use that contains ord<"},
			"/?prefix=ord":            {"1 name in use that starts with ord<"},
			"/?format=text":           {"/zklock\n", "NAME             HELD BY    HELD          WAITERS  LONGEST WAIT  LABEL\n"},
			"/?format=text&name=none": {"/zklock\n"},
		} {
			text := get(t, h, query).Body.String()
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s lacks %q:\n%s", query, want, text)
				}
			}
			attributes := strings.NewReplacer("data-copy=\"zklock revoke 'orders/\u202e42'", "", "data-copy=\"zklock revoke &#39;orders/\u202e42", "", "data-key=\"orders/\u202e42", "")
			if rest := attributes.Replace(text); strings.Contains(rest, "\u202e") {
				at := strings.Index(rest, "\u202e")
				t.Errorf("%s has a character that turns the text around: %q", query, rest[max(0, at-60):at+20])
			}
			if strings.Contains(query, "format=text") {
				for line := range strings.Lines(text) {
					if strings.HasPrefix(line, "orders/") && strings.Index(line, "asked") > 40 || len(line) > 160 {
						t.Errorf("%s: the label moves columns away: %q", query, line)
					}
				}
			}
		}
		w.hold(w.web.Mutex("orders/7"), "")
		if text := get(t, h, "/?q=ord").Body.String(); !strings.Contains(text, "2 names in use that contain ord<") {
			t.Errorf("two names:\n%s", text)
		}
	})
}

// While the reader types, the answer to the text before is not waited for, and a page that waits for one says so.
func TestFilterInABrowser(t *testing.T) {
	b, w := newBrowser(t), newWorld(t)
	for i := range 3 {
		w.hold(w.jobs.Mutex(fmt.Sprintf("job-%d", i)), "")
	}
	h := inspect.Handler(w.web)
	dropped := make(chan struct{}, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.FormValue("q") == "j" {
			<-r.Context().Done() // until the browser drops it
			dropped <- struct{}{}
			return
		}
		h.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { b.open("about:blank"); srv.CloseClientConnections(); srv.Close() })
	b.open(srv.URL + "/")
	b.until(live + " && " + contains("3 names, 0 waiting processes") + " && document.title === 'locks of /zklock'")
	b.press("/")
	b.until(`document.activeElement.id === "filter"`)
	b.press("j")
	b.until(`document.getElementById("state").textContent === "reading…" && !document.body.classList.contains("stale")`)
	for _, key := range "ob-2" {
		b.press(string(key))
	}
	b.until(live + ` && document.querySelectorAll("main tbody tr").length === 1 && ` + contains("1 name in use that contains job-2"))
	<-dropped
}
