package inspect_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock/inspect"
)

// stream is an open request of events.
type stream struct {
	t     *testing.T
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
	s := &stream{t: t, lines: bufio.NewReader(resp.Body), close: func() { cancel(); resp.Body.Close() }}
	t.Cleanup(s.close)
	return s
}

// until reads events until one contains text, and returns its data.
func (s *stream) until(text string) string {
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
		if !json.Valid([]byte(data)) {
			s.t.Errorf("not JSON: %s", data)
		}
		if strings.Contains(data, text) {
			return data
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
	before := w.ensemble.Ops()
	for range 10 { // pages that come later get the newest state, without a request
		follow(t, srv.URL+"/api/events?name=orders%2F42").until("row 1200 of 9000")
	}
	after := w.ensemble.Ops()
	if after.WatchChildren != before.WatchChildren || after.Children-before.Children > 4 { // the list is read meanwhile
		t.Errorf("ten pages of one name cost %d watches and %d lists", after.WatchChildren-before.WatchChildren, after.Children-before.Children)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	one.until(`"contenders":[]`)
	list.until(`"locks":[]`)
	bad := follow(t, srv.URL+"/api/events?name=a%2F%2Fb")
	bad.until(`"error"`)
}

// The number of open pages is bounded, and a page that closes makes room.
func TestTooManyPagesAreRefused(t *testing.T) {
	w := newWorld(t)
	srv := httptest.NewServer(inspect.Handler(w.web))
	t.Cleanup(func() { http.DefaultClient.CloseIdleConnections(); srv.Close() }) // after the streams
	var open []*stream
	for range 256 {
		s := follow(t, srv.URL+"/api/events?name=x")
		s.until(`"name":"x"`)
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
