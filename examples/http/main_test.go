package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
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

// lines is an io.Writer that sends each write to a channel.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// TestWhatTheReadmeShows sends the requests of the README's curl commands, with shorter
// times.
func TestWhatTheReadmeShows(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out := make(lines, 2)
	done := make(chan error, 1)
	go func() { done <- run(ctx, []string{"-listen", "127.0.0.1:0,127.0.0.1:0"}, out) }()
	var addrs []string
	for range 2 {
		select {
		case line := <-out:
			addrs = append(addrs, regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(line))
		case err := <-done:
			t.Fatal(err)
		}
	}
	// The status is 0 if the client ends the request.
	post := func(client context.Context, replica int, path string) (status int, body string) {
		req, err := http.NewRequestWithContext(client, http.MethodPost, "http://"+addrs[replica]+path, nil)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			if client.Err() == nil {
				t.Error(err)
			}
			return 0, ""
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	// This function sends a payment to replica 0, runs f while the payment holds the
	// order's lock, and returns the answer to the payment. f may end the payment.
	beside := func(id int, d time.Duration, f func(end func())) (status int, body string) {
		client, end := context.WithCancel(ctx)
		defer end()
		var wg sync.WaitGroup
		wg.Go(func() { status, body = post(client, 0, fmt.Sprintf("/orders/%d/pay?for=%v", id, d)) })
		deadline := time.NewTimer(10 * time.Second)
		defer deadline.Stop()
		for {
			// Cancelling is refused as soon as the payment holds the lock.
			if s, _ := post(ctx, 1, fmt.Sprintf("/orders/%d/cancel?for=0s", id)); s == http.StatusConflict {
				break
			}
			select {
			case <-deadline.C:
				t.Fatal("the payment did not get the lock within 10 s")
			default:
			}
		}
		f(end)
		wg.Wait()
		return status, body
	}

	// The payment holds the lock for less than the 5 s that the second one waits. A busy
	// machine has seconds to see that it does.
	const held = 3 * time.Second
	start := time.Now()
	if s, body := beside(1, held, func(func()) {
		if s, body := post(ctx, 1, "/orders/1/pay"); s != 200 || time.Since(start) < held {
			t.Errorf("contention: %d %q after %v", s, body, time.Since(start))
		}
	}); s != 200 {
		t.Errorf("the payment that held the lock: %d %q", s, body)
	}
	if s, body := beside(2, time.Minute, func(end func()) {
		if s, body := post(ctx, 1, "/orders/2/pay"); s != 423 || !strings.Contains(body, "LOCK_CONTENDED") {
			t.Errorf("timeout: %d %q", s, body)
		}
		end()
	}); s != 0 {
		t.Errorf("the payment that its client ended: %d %q", s, body)
	}
	// Loss: the test ends all sessions again and again. A payment whose session ends
	// before it has the lock only queues again.
	lost := make(chan struct{})
	var status int
	var body string
	go func() {
		defer close(lost)
		status, body = post(ctx, 0, "/orders/3/pay?for=1m")
	}()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for paying := true; paying; {
		select {
		case <-lost:
			paying = false
		case <-again.C:
			post(ctx, 1, "/expire")
		}
	}
	if status != 424 || !strings.Contains(body, "LOCK_LOST") {
		t.Errorf("loss: %d %q", status, body)
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestMistakesAreErrors(t *testing.T) {
	for _, args := range [][]string{{"-nonsense"}, {"-url", "nonsense://x"}, {"-listen", "nowhere"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("arguments %q were accepted", args)
		}
	}
}
