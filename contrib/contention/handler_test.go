package contention_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/contention"
)

// A duration that cannot be measured is refused, and a client that goes away ends the request.
func TestSeconds(t *testing.T) {
	h := contention.New().Handler()
	for _, seconds := range []string{"0", "-1", "x", "1e300", "NaN"} {
		if got := get(t, h, "?seconds="+seconds).StatusCode; got != http.StatusBadRequest {
			t.Errorf("seconds=%s: status %d", seconds, got)
		}
	}
	if got := get(t, h, "?seconds=0.001").StatusCode; got != http.StatusOK {
		t.Errorf("seconds=0.001: status %d", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/?seconds=3600", nil))

	s := httptest.NewUnstartedServer(h)
	s.Config.WriteTimeout = time.Minute
	s.Start()
	defer s.Close()
	resp, err := http.Get(s.URL + "?seconds=60")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("as long as the WriteTimeout: status %d", resp.StatusCode)
	}
}

// The pages say what they are to a browser and to go tool pprof.
func TestPages(t *testing.T) {
	p := contention.New()
	for first, h := range map[string]http.Handler{"0 waits in ": p.Handler(), "0 locks held": p.HeldHandler()} {
		page := get(t, h, "?debug=1")
		if got := page.Header.Get("Content-Type"); got != "text/plain; charset=utf-8" {
			t.Errorf("the text is %q", got)
		}
		if got := text(t, h, "?debug=1"); !strings.HasPrefix(got, first) {
			t.Errorf("the text is %q, want %q", got, first)
		}
		profile := get(t, h, "?debug=0")
		if got := profile.Header.Get("Content-Type"); got != "application/octet-stream" {
			t.Errorf("the profile is %q", got)
		}
		if got := profile.Header.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("X-Content-Type-Options is %q", got)
		}
	}
}
