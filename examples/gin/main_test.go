package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestMain(m *testing.M) { leaks.Main(m) }

func TestBurstEndsByItselfWithASummary(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), nil, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "the counters add up to 400, 0 requests overlapped") || !strings.Contains(out.String(), "ok:") {
		t.Errorf("the summary is wrong:\n%s", &out)
	}
}

// TestWhatTheReadmeShows sends requests like the README's while another client holds a
// lock.
func TestWhatTheReadmeShows(t *testing.T) {
	ensemble := memdriver.New()
	defer ensemble.Close()
	var clients [2]*zklock.Client
	for i := range clients {
		var err error
		if clients[i], err = zklock.OpenConnector(ensemble.Connector()); err != nil {
			t.Fatal(err)
		}
		defer clients[i].Close()
	}
	srv := httptest.NewServer(router(clients[0], new(shop)))
	defer srv.Close()
	post := func(path string) (status int, body string) {
		resp, err := http.Post(srv.URL+path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	for _, c := range []struct {
		lock, path string
		status     int
		reason     string
	}{
		{"orders/42", "/orders/42/pay", 423, "LOCK_CONTENDED"},
		{"routes/reports/:id", "/reports/2026", 409, "LOCK_CONTENDED"},
		{"orders/42", "/orders/43/pay", 200, "done"},
		{"orders/42", "/orders/43/pay?for=x", 400, "bad duration"},
		{"orders/42", "/orders/../pay", 400, "LOCK_NAME"},
	} {
		l, err := clients[1].Mutex(c.lock).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if s, body := post(c.path); s != c.status || !strings.Contains(body, c.reason) {
			t.Errorf("%s while %s is held: %d %q", c.path, c.lock, s, body)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}

	// Loss: the test ends all sessions while the replica's client holds a lock. It
	// repeats that until the request is answered.
	type answer struct {
		status int
		body   string
	}
	answered := make(chan answer, 1)
	go func() {
		s, body := post("/orders/42/pay?for=1m")
		answered <- answer{s, body}
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	for {
		select {
		case a := <-answered:
			if a.status != 424 || !strings.Contains(a.body, "LOCK_LOST") {
				t.Errorf("loss: %d %q", a.status, a.body)
			}
			http.DefaultClient.CloseIdleConnections()
			return
		case <-tick.C:
			if clients[0].Stats().Held > 0 {
				ensemble.ExpireAll()
			}
		case <-deadline.C:
			t.Fatal("the request whose lock was lost was not answered")
		}
	}
}

func TestMistakesAreErrors(t *testing.T) {
	for _, args := range [][]string{{"-nonsense"}, {"-url", "nonsense://x"}, {"-listen", "nowhere"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("arguments %q were accepted", args)
		}
	}
}
