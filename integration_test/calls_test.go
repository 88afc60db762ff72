package integration_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/fence"
)

// soon is the deadlock_timeout of chains that have Soon set.
const soon = 100 * time.Millisecond

// services are four services in four processes: by HTTP, gRPC, HTTP and gRPC.
type services struct {
	t    *testing.T
	all  []*process
	addr []string

	mu   sync.Mutex
	seen []report       // guarded by mu; about acquisitions
	read sync.WaitGroup // of those that read the reports
}

// startServices starts the services. Clients of chains without Soon never look for deadlocks in a test.
func startServices(t *testing.T) *services {
	t.Helper()
	zk := sharedEnsemble(t)
	s := &services{t: t}
	for i := range 4 {
		s.all = append(s.all, startWorker(t, task{Role: "service", Name: []string{"http", "grpc"}[i%2], URLs: []string{
			withCanary(zk.URL(rootOf(t), quick("deadlock_timeout", "1h"))), withCanary(zk.URL(rootOf(t), quick("deadlock_timeout", soon.String())))}}))
	}
	for _, p := range s.all {
		s.addr = append(s.addr, p.await("ready").Call.Addr)
		s.read.Go(func() {
			for r := range p.reports {
				if r.What == "error" {
					t.Errorf("a service: %s", r.Err)
				}
				s.mu.Lock()
				s.seen = append(s.seen, r)
				s.mu.Unlock()
			}
		})
	}
	return s
}

// hop returns the part of a chain at one of the services.
func (s *services) hop(service int, lock string, gate bool) hop {
	return hop{Addr: s.addr[service], GRPC: service%2 == 1, Lock: lock, Gate: gate}
}

// kinds counts what became of the acquisitions of locks whose names have a prefix, other than waits and
// successes.
func (s *services) kinds(prefix string) map[string]int {
	kinds := s.count(prefix)
	delete(kinds, "waiting")
	delete(kinds, "acquired")
	return kinds
}

// count counts all.
func (s *services) count(prefix string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	kinds := make(map[string]int)
	for _, r := range s.seen {
		if r.Call != nil && strings.HasPrefix(r.Call.Name, prefix) {
			kinds[r.Call.Kind]++
		}
	}
	return kinds
}

// until waits until acquisitions have become this, n times.
func (s *services) until(prefix, kind string, n int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%s*: %d are %s", prefix, n, kind), func() bool { return s.count(prefix)[kind] >= n })
}

// opposite begins two chains with opposite orders. Both hold their first locks when they go for the others'.
// The first acquires a and b, and wants c. The second acquires c, and wants a.
func (s *services) opposite(ctx [2]context.Context, prefix string, like chain) (ended [2]chan error) {
	s.t.Helper()
	chains := [2][]hop{
		{s.hop(0, prefix+"a", false), s.hop(1, prefix+"b", true), s.hop(2, prefix+"c", false)},
		{s.hop(2, prefix+"c", true), s.hop(3, prefix+"a", false)},
	}
	for i := range chains {
		ended[i] = make(chan error, 1)
		k := like
		k.Hops, k.Soon = chains[i], true
		go func() { ended[i] <- newCaller().call(ctx[i], k, nil) }()
	}
	s.until(prefix, "acquired", 3)
	s.all[1].start()
	s.all[2].start()
	return ended
}

// TestDeadlocksThroughCalls: services hold locks, and call others, which want locks that are held above. The
// services are four processes, two by HTTP and two by gRPC. Where the immediate check has to answer, no client
// looks for circles of waits before an hour has passed.
func TestDeadlocksThroughCalls(t *testing.T) {
	t.Parallel()
	s := startServices(t)
	c := dial(t, sharedEnsemble(t).Hosts(), quick())
	want := make(map[string]map[string]int) // by prefix, what becomes of acquisitions that fail
	background := [2]context.Context{within(t), within(t)}

	// The last service of a chain of four wants the lock of the first.
	for first, says := range []string{"Internal LOCK_ERROR", "500 LOCK_ERROR"} {
		prefix := fmt.Sprintf("ring%d/", first)
		k := chain{}
		for i, lock := range []string{"x", "y", "z", "x"} {
			k.Hops = append(k.Hops, s.hop((first+i)%4, prefix+lock, false))
		}
		if err := newCaller().call(within(t), k, nil); err == nil || err.Error() != says {
			t.Errorf("a ring that begins at service %d: %v, want %s", first, err, says)
		}
		if n := s.count(prefix)["waiting"]; n != 0 {
			t.Errorf("a ring that begins at service %d: %d waits", first, n)
		}
		want[prefix] = map[string]int{"caller": 1}
	}

	// Two chains in opposite orders: one of them fails.
	failed := 0
	for _, ended := range s.opposite(background, "opposite/", chain{}) {
		if err := <-ended; err != nil {
			failed++
			if text := err.Error(); text != "423 LOCK_DEADLOCK" && text != "Aborted LOCK_DEADLOCK" {
				t.Errorf("a chain in a circle of two: %s", text)
			}
		}
	}
	if failed != 1 {
		t.Errorf("%d of two chains failed", failed)
	}
	want["opposite/"] = map[string]int{"deadlock": 1}

	// The same, of strangers: both wait until one of them gives up.
	ctx, cancel := context.WithCancel(within(t))
	strangers := s.opposite([2]context.Context{ctx, within(t)}, "strangers/", chain{Stranger: true})
	s.until("strangers/", "waiting", 2)
	time.Sleep(5 * soon) // a look would have been made by now
	if got := s.kinds("strangers/"); len(got) != 0 {
		t.Errorf("chains of strangers: %v", got)
	}
	cancel()
	if err := <-strangers[0]; err == nil {
		t.Error("a chain that was cancelled got its locks")
	}
	if err := <-strangers[1]; err != nil {
		t.Errorf("the other chain: %v", err)
	}
	want["strangers/"] = map[string]int{"cancelled": 1}

	// What the last service does not know it waits for: of a stranger, and two services above if the one in the
	// middle sends its own locks only.
	for prefix, k := range map[string]chain{"stranger/": {Stranger: true}, "own/": {Own: true, Soon: true}} {
		k.Hops = []hop{s.hop(0, prefix+"x", false), s.hop(1, prefix+"y", false), s.hop(2, prefix+"x", false)}
		ctx, cancel := context.WithCancel(within(t))
		ended := make(chan error, 1)
		go func() { ended <- newCaller().call(ctx, k, nil) }()
		s.until(prefix, "waiting", 1)
		time.Sleep(5 * soon)
		if got := s.kinds(prefix); len(got) != 0 {
			t.Errorf("%s: %v", prefix, got)
		}
		cancel()
		if err := <-ended; err == nil {
			t.Errorf("%s: a chain that was cancelled got its locks", prefix)
		}
		want[prefix] = map[string]int{"cancelled": 1}
	}

	// A sender that claims to hold a lock which another client has, with the right token. Of a stranger, the
	// claim has no effect.
	for service, says := range []string{"500 LOCK_ERROR", "Internal LOCK_ERROR"} {
		prefix := fmt.Sprintf("forged%d/", service)
		l := acquire(t, c.Mutex(prefix+"x"))
		var claim []string
		for _, q := range fence.Of(l) {
			claim = append(claim, q.String())
		}
		k := chain{Hops: []hop{s.hop(service, prefix+"x", false)}}
		if err := newCaller().call(within(t), k, claim); err == nil || err.Error() != says {
			t.Errorf("a claim of a trusted sender: %v, want %s", err, says)
		}
		k.Stranger = true
		ended := make(chan error, 1)
		go func() { ended <- newCaller().call(within(t), k, claim) }()
		s.until(prefix, "waiting", 1)
		release(t, l)
		if err := <-ended; err != nil {
			t.Errorf("a stranger that waits for a lock: %v", err)
		}
		want[prefix] = map[string]int{"caller": 1}
	}

	// Nothing is left: all locks can be had, and no acquisition has ended in another way.
	for prefix := range want {
		for _, name := range []string{"a", "b", "c", "x", "y", "z"} {
			release(t, acquire(t, c.Mutex(prefix+name)))
		}
	}
	if found, err := c.Deadlocks(within(t)); err != nil || len(found) != 0 {
		t.Errorf("deadlocks at the end: %v, %v", found, err)
	}
	for _, p := range s.all {
		p.stop()
	}
	s.read.Wait()
	for prefix, kinds := range want {
		got := s.kinds(prefix)
		if len(got) == 0 && (prefix == "stranger/" || prefix == "own/") {
			continue // the first service heard of the end before the last, which got its lock
		}
		if !maps.Equal(got, kinds) {
			t.Errorf("%s: acquisitions that failed: %v, want %v", prefix, got, kinds)
		}
	}
	for _, r := range s.seen {
		if r.Call != nil && r.Call.Kind == "deadlock" {
			t.Log(r.Err)
		}
	}
}
