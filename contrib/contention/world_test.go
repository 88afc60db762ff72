package contention_test

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"

	"github.com/zklock/go-zklock/contrib/contention"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// replica is a client with a profile of its own.
type replica struct {
	*zklock.Client
	*contention.Profile
	t *testing.T
}

// join returns a client of an ensemble, of a host with that name.
func join(t *testing.T, e *memdriver.Ensemble, host string, opts ...contention.Option) *replica {
	t.Helper()
	p := contention.New(opts...)
	c, err := zklock.OpenConnector(e.Connector(), zklock.WithHooks(p.Hooks()), zklock.WithIdentity(zklock.Identity{Host: host, PID: 1}), zklock.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &replica{c, p, t}
}

// world runs a test in a synctest bubble, with an ensemble in memory.
func world(t *testing.T, test func(t *testing.T, e *memdriver.Ensemble)) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		t.Cleanup(func() { _ = e.Close() })
		test(t, e)
	})
}

// get asks a handler for a page.
func get(t *testing.T, h http.Handler, query string) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/zklock/profile"+query, nil))
	return w.Result()
}

// text returns a page as text.
func text(t *testing.T, h http.Handler, query string) string {
	t.Helper()
	page, err := io.ReadAll(get(t, h, query).Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// parse asks a handler for a profile.
func parse(t *testing.T, h http.Handler, query string) *profile.Profile {
	t.Helper()
	p, err := profile.Parse(get(t, h, query).Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return p
}

// row is what a profile has for some frames, innermost first, up to that of the test.
type row struct {
	frames string
	values [2]int64
}

// rows returns the samples of a profile, sorted by their frames. The functions of this package
// have their names only, without the package.
func rows(p *profile.Profile) (all []row) {
	sums := make(map[string][2]int64)
	for _, s := range p.Sample {
		var frames []string
		for _, l := range s.Location {
			name := l.Line[0].Function.Name
			if own, found := strings.CutPrefix(name, "github.com/zklock/go-zklock/contrib/contention_test."); found {
				if strings.HasPrefix(own, "Test") {
					break
				}
				name = own
			}
			frames = append(frames, name)
		}
		key := strings.Join(frames, "; ")
		sums[key] = [2]int64{sums[key][0] + s.Value[0], sums[key][1] + s.Value[1]}
	}
	for _, frames := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, row{frames, sums[frames]})
	}
	return all
}

// want compares the samples of a profile.
func want(t *testing.T, p *profile.Profile, rowsWanted ...row) {
	t.Helper()
	if got := rows(p); !slices.Equal(got, rowsWanted) {
		t.Errorf("the profile has\n%v\nwant\n%v", got, rowsWanted)
	}
}

// Two call sites. Each acquires, works for d or until the client is closed, and releases.

func pay(c *zklock.Client, name string, d time.Duration, opts ...zklock.AcquireOption) {
	_ = zklock.Do(context.Background(), c.Mutex(name), func(_ context.Context, lock *zklock.Lock) error {
		work(lock, d)
		return nil
	}, opts...)
}

func ship(c *zklock.Client, name string, d time.Duration) {
	lock, err := c.Mutex(name).Acquire(context.Background())
	if err != nil {
		return
	}
	work(lock, d)
	_ = lock.Release(context.Background())
}

func work(lock *zklock.Lock, d time.Duration) {
	select {
	case <-lock.Done():
	case <-time.After(d):
	}
}
