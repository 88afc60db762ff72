package integration_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// register stores a number for each key, and records the process that is working on it. Only
// the fencing tokens of the requests protect the numbers.
type register struct {
	url string

	mu      sync.Mutex
	values  map[string]int // guarded by mu
	holders map[string]int // guarded by mu; key -> process, between its GET and its PUT
	applied map[string]int // guarded by mu; request id -> process
	dead    map[int]bool   // guarded by mu; the killed processes
	faults  []string       // guarded by mu
	most    int            // guarded by mu; the largest number of keys in use at the same time
	half    int            // guarded by mu
	reached chan struct{}  // closed when half requests are applied
}

func newRegister(t *testing.T) *register {
	g := &register{values: make(map[string]int), holders: make(map[string]int), applied: make(map[string]int), dead: make(map[int]bool), reached: make(chan struct{})}
	check := middleware.New(func(*http.Request) zklock.Acquirer { return nil },
		middleware.WithSequencerCheck(new(fence.Guard), func(*http.Request) (string, bool) { return "", true }),
		middleware.WithObserver(func(r *http.Request, err error) { g.fault("%s %s: %v", r.Method, r.URL, err) }))
	srv := httptest.NewServer(check(http.HandlerFunc(g.serve)))
	t.Cleanup(srv.Close)
	g.url = srv.URL
	return g
}

func (g *register) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	key, id := q.Get("key"), q.Get("id")
	pid, _ := strconv.Atoi(q.Get("pid"))
	if len(r.Header.Values(fence.Key)) != 1 {
		g.fault("%s %s: the request has no token", r.Method, r.URL)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Method == http.MethodGet {
		if by, busy := g.holders[key]; busy {
			g.faults = append(g.faults, fmt.Sprintf("process %d is working on key %s, and process %d begins to", by, key, pid))
		}
		if !g.dead[pid] { // a dead process's request may arrive after the kill
			g.holders[key] = pid
			g.most = max(g.most, len(g.holders))
		}
		fmt.Fprint(w, g.values[key])
		return
	}
	delete(g.holders, key)
	if _, again := g.applied[id]; again {
		return // sent again: the answer to the first PUT was lost
	}
	if value := q.Get("value"); value != strconv.Itoa(g.values[key]+1) {
		g.faults = append(g.faults, fmt.Sprintf("key %s: %s overwrites %d", key, value, g.values[key]))
	}
	g.values[key]++
	g.applied[id] = pid
	if g.half > 0 && len(g.applied) == g.half {
		close(g.reached)
	}
}

func (g *register) fault(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = append(g.faults, fmt.Sprintf(format, args...))
}

// halfway returns a channel that is closed when n requests were served.
func (g *register) halfway(n int) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.half = n
	return g.reached
}

// bury records that a process was killed, and so does not work on any key.
func (g *register) bury(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dead[pid] = true
	for key, by := range g.holders {
		if by == pid {
			delete(g.holders, key)
		}
	}
}

func (g *register) servedBy(pid int) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, by := range g.applied {
		if by == pid {
			n++
		}
	}
	return n
}

func (g *register) check(t *testing.T, requests, keys int) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, f := range g.faults {
		t.Error(f)
	}
	if len(g.applied) != requests {
		t.Errorf("%d requests were served, want %d", len(g.applied), requests)
	}
	for key := range keys {
		if n := g.values[strconv.Itoa(key)]; n != requests/keys {
			t.Errorf("key %d has the number %d, want %d", key, n, requests/keys)
		}
	}
	if g.most < keys/4 {
		t.Errorf("at most %d keys were in use at the same time: requests for different keys wait for each other", g.most)
	}
}
