package inspect_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock/inspect"
)

// stream is an open request of events.
type stream struct {
	t     *testing.T
	page  string // the URL of the page that follows it
	lines *bufio.Reader
	close func()
}

func follow(t *testing.T, url string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s, %s", url, resp.Status, resp.Header.Get("Content-Type"))
	}
	s := &stream{t: t, page: strings.Replace(url, "/api/events", "/", 1), lines: bufio.NewReader(resp.Body), close: func() { cancel(); resp.Body.Close() }}
	t.Cleanup(s.close)
	return s
}

// until reads events until the page that follows them contains text.
func (s *stream) until(text string) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			s.t.Fatalf("the stream ended before %q: %v", text, err)
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if _, err := strconv.Atoi(strings.TrimSpace(data)); err != nil {
			s.t.Errorf("an event with more than a number: %s", data)
		}
		resp, err := http.Get(s.page)
		if err != nil {
			s.t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			s.t.Fatal(err)
		}
		if strings.Contains(string(page), text) {
			return
		}
	}
}

// A page gets the present state first, and then each change; all pages of one name share what
// that costs, and the last one ends it.
func TestEventsFollowANameAndTheList(t *testing.T) {
	w := newWorld(t)
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); srv.Close() }) // after the streams
	l := w.hold(w.jobs.Mutex("orders/42"), "row 0 of 9000")
	one := follow(t, srv.URL+"/api/events?name=orders%2F42")
	list := follow(t, srv.URL+"/api/events?prefix=orders%2F")
	one.until("row 0 of 9000")
	list.until("row 0 of 9000")
	if err := l.SetLabel(t.Context(), "row 1200 of 9000"); err != nil {
		t.Fatal(err)
	}
	one.until("row 1200 of 9000")
	list.until("row 1200 of 9000")
	before := memcontrol.Of(w.ensemble).Ops()
	for range 10 { // pages that come later get the newest state, without a request
		follow(t, srv.URL+"/api/events?name=orders%2F42").until("row 1200 of 9000")
	}
	after := memcontrol.Of(w.ensemble).Ops()
	if after.WatchChildren != before.WatchChildren { // other requests are allowed: the page of the list makes some
		t.Errorf("ten pages of one name cost %d watches", after.WatchChildren-before.WatchChildren)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	one.until("No client holds this name")
	list.until("No name is in use")
	bad := follow(t, srv.URL+"/api/events?name=a%2F%2Fb")
	bad.until(`role="alert"`)
}

// The number of open pages is bounded, and a page that closes makes room.
func TestTooManyPagesAreRefused(t *testing.T) {
	w := newWorld(t)
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); srv.Close() }) // after the streams
	var open []*stream
	for range 256 {
		s := follow(t, srv.URL+"/api/events?name=x")
		s.until("No client holds this name")
		open = append(open, s)
	}
	status := func() int {
		r, err := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/api/events?name=x", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if code := status(); code != http.StatusServiceUnavailable {
		t.Errorf("the page after the last one that is allowed: status %d", code)
	}
	for _, s := range open {
		s.close()
	}
	for status() != http.StatusOK { // the server notices the closed connections soon
		if t.Context().Err() != nil {
			t.Fatal("no page is accepted after all others were closed")
		}
	}
}

// However many pages are open, and however often they are read again after events: the ensemble is
// read once for all of them.
func TestPagesShareOneReading(t *testing.T) {
	for _, query := range []string{"prefix=orders%2F", "name=orders%2F42"} {
		t.Run(query, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				l := w.hold(w.jobs.Mutex("orders/42"), "row 0")
				h := inspect.Handler(w.web)
				reads := func() string {
					o := memcontrol.Of(w.ensemble).Ops()
					return fmt.Sprint(o.Gets, o.Watches, o.Children, o.WatchChildren, o.WatchExists, o.Syncs)
				}
				readAll := func(label string) {
					t.Helper()
					synctest.Wait()
					before := reads()
					for range 10 {
						if text := get(t, h, "/?"+query).Body.String(); !strings.Contains(text, label) {
							t.Errorf("the page lacks %q:\n%s", label, text)
						}
					}
					if after := reads(); after != before {
						t.Errorf("ten pages cost requests: %s, then %s", before, after)
					}
				}
				ctx, leave := context.WithCancel(t.Context())
				pages := make([]*httptest.ResponseRecorder, 3)
				left := make(chan struct{})
				for i := range pages {
					pages[i] = httptest.NewRecorder()
					go func() {
						h.ServeHTTP(pages[i], httptest.NewRequest("GET", "/api/events?"+query, nil).WithContext(ctx))
						left <- struct{}{}
					}()
				}
				readAll("row 0")
				if err := l.SetLabel(t.Context(), "row 1"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second) // the list is read every two seconds
				readAll("row 1")
				leave()
				for range pages {
					<-left
				}
				for _, p := range pages {
					if !regexp.MustCompile(`^event: silent\ndata: 0\n\n(data: 1\n\n)?data: 2\n\n(data: 3\n\n)?$`).MatchString(p.Body.String()) {
						t.Errorf("events %q, want rising numbers for the queue, with the other names (or both at once), and with the label", p.Body)
					}
				}
			})
		})
	}
}
