package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// get returns the text of a page.
func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v\n%s", url, resp.Status, err, body)
	}
	return string(body)
}

// scrape returns the page that Prometheus gets from a client after everything that is
// measured has happened: contention, a hand-over, a failure, a session that began and
// ended, and a loss.
func scrape(t *testing.T) string {
	t.Helper()
	tel, err := export(t.Context(), flags{name: "shop", prometheus: "127.0.0.1:0"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tel.shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	e := memdriver.New()
	defer e.Close()
	c, err := zklock.OpenConfig(zklock.Config{Connector: e.Connector(), HandoverTime: time.Minute}, zklock.WithHooks(tel.hooks()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stats, err := tracing.RegisterStats(c, tracing.WithMeterProvider(tel.meters))
	if err != nil {
		t.Fatal(err)
	}
	defer stats.Unregister()
	term, err := election.New(c, "reminders").Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := term.Resign(t.Context()); err != nil {
		t.Fatal(err)
	}
	lock, err := c.Mutex("orders/1").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	heir := make(chan *zklock.Lock, 1)
	go func() {
		l, _ := c.Mutex("orders/1").Acquire(t.Context())
		heir <- l
	}()
	eventually(t, "the second acquisition waits", func() bool { return c.Stats().Waiting == 1 })
	if _, err := c.Mutex("orders/1").TryAcquire(lockContext(t, lock)); err == nil {
		t.Fatal("TryAcquire in the context of the lock succeeded, want a deadlock error")
	}
	metrics := func() string { return get(t, "http://"+tel.scraped+"/metrics") }
	eventually(t, "the metrics have a heartbeat", func() bool { return strings.Contains(metrics(), "zklock_lease_remaining") })
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lock = <-heir; lock == nil {
		t.Fatal("the waiter did not get the lock")
	}
	e.ExpireAll()
	<-lock.Done()
	if err := lock.Release(t.Context()); err == nil {
		t.Fatal("the release of a lost lock succeeded")
	}
	// Hooks report the loss of the lock first, and then the end of its session.
	eventually(t, "the loss is counted", func() bool {
		return regexp.MustCompile(`zklock_lost_total\{error_type="lost",.*\} 1\n(?s:.*)zklock_session_lost_total\{.*\} 1\n`).MatchString(metrics())
	})
	if page := get(t, "http://"+tel.scraped+"/debug/zklock/contention?debug=1"); !strings.Contains(page, "1 wait: lock orders/*, held by ") {
		t.Errorf("the profile of waits is\n%s", page)
	}
	if page := get(t, "http://"+tel.scraped+"/debug/zklock/held?debug=1"); !strings.HasPrefix(page, "0 locks held") {
		t.Errorf("the profile of held locks is\n%s", page)
	}
	return metrics()
}

func lockContext(t *testing.T, lock *zklock.Lock) context.Context {
	ctx, cancel := lock.Context(t.Context())
	t.Cleanup(cancel)
	return ctx
}

func TestScrape(t *testing.T) {
	page := scrape(t)
	for _, want := range []string{
		`zklock_acquire_duration_seconds_count{.*zklock_mode="exclusive",zklock_name="orders",zklock_outcome="acquired"} 2`,
		`zklock_acquire_duration_seconds_count{error_type="deadlock",.*zklock_outcome="error"} 1`,
		`zklock_wait_duration_seconds_count{.*zklock_outcome="acquired"} 1`,
		`zklock_wait_duration_seconds_bucket{.*le="300"} 1`,
		`zklock_hold_duration_seconds_count{.*zklock_release_reason="lost"} 1`,
		`zklock_stop_duration_seconds_count{error_type="lost",.*zklock_name="orders"} 1`,
		`zklock_held{.*zklock_mode="exclusive",zklock_name="orders"} 0`,
		`zklock_hold_duration_seconds_count{.*zklock_candidacy="true",.*zklock_name="reminders",.*} 1`,
		`zklock_handovers_total{.*} 1`,
		`zklock_session_lost_total{.*} 1`,
		`zklock_sessions{.*zklock_session_state="suspended"} 0`,
		`zklock_hold_longest_seconds{.*zklock_client="\d+"} 0`,
		`zklock_wait_longest_seconds{.*zklock_client="\d+"} 0`,
		`zklock_forgotten_total{.*} 0`,
		`zklock_tokens_regressed{.*} 0`,
	} {
		if !regexp.MustCompile(want).MatchString(page) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
	if strings.Contains(page, "orders/1") {
		t.Error("the full name of a lock is in the metrics")
	}

	// The metrics have every name that the dashboard and the alerts query.
	there := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^zklock_[a-z_]+|zklock_[a-z_]+=|error_type=`).FindAllString(page, -1) {
		there[strings.TrimSuffix(m, "=")] = true
	}
	for _, file := range []string{"dashboard.json", "alerts.yml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		asked := regexp.MustCompile(`\bzklock_[a-z_]+|\berror_type\b`).FindAllString(string(text), -1)
		if len(asked) < 5 {
			t.Errorf("%s queries only %v", file, asked)
		}
		for _, name := range asked {
			if !there[name] {
				t.Errorf("%s queries %s, which the metrics do not have", file, name)
			}
		}
	}
}
