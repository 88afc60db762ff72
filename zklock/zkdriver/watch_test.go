package zkdriver_test

import (
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// paths returns the watches on data in the body of a request that sets watches.
func (r req) paths() []string { return r.lists()[0] }

// lists returns the watches on data, on creation and on children in such a body.
func (r req) lists() (lists [3][]string) {
	b := r.body[8:] // after the zxid
	for i := range lists {
		n := binary.BigEndian.Uint32(b)
		for b = b[4:]; n > 0; n-- {
			size := binary.BigEndian.Uint32(b)
			lists[i], b = append(lists[i], string(b[4:4+size])), b[4+size:]
		}
	}
	return lists
}

// TestWatchesThatAreSetAgainTakeNoMoreMemory: after each reconnect, a user of the
// session reads and watches its nodes again, as package zklock does.
func TestWatchesThatAreSetAgainTakeNoMoreMemory(t *testing.T) {
	const nodes, reconnects = 200, 50
	var mu sync.Mutex
	set := make(map[int][]string) // by connection: the watches that were set again
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op == opSetWatch {
				mu.Lock()
				set[l.n] = append(set[l.n], r.paths()...)
				mu.Unlock()
			}
			l.succeed(r)
			if r.op == opSync { // all watches have been set before it
				l.event(2, r.path())
			}
		}
	})
	s := connect(t, p.url())
	ctx := within(t, time.Minute)
	events := make(map[string]<-chan driver.Event)
	watch := func() {
		for i := range nodes {
			path := "/node-" + strconv.Itoa(i)
			_, ch, err := s.Watch(ctx, path)
			if err != nil {
				t.Fatal(err)
			}
			events[path] = ch
		}
	}
	watch()
	before := settledGoroutines(t, 0)
	for n := range reconnects {
		p.drop()
		generation(t, s, uint64(n)+2)
		watch()
		if got := zkdriver.WatchChannels(s); got != nodes {
			t.Fatalf("after %d reconnects %d channels wait for events of %d nodes", n+1, got, nodes)
		}
	}
	settledGoroutines(t, before+2*reconnects/10) // a few more belong to requests
	mu.Lock()
	for n, paths := range set {
		slices.Sort(paths)
		if len(paths) != nodes || len(slices.Compact(paths)) != nodes {
			t.Errorf("connection %d: %d watches were set again, want one for each of %d nodes", n, len(paths), nodes)
		}
	}
	if len(set) != reconnects {
		t.Errorf("watches were set again on %d connections, want %d", len(set), reconnects)
	}
	mu.Unlock()
	for path, ch := range events {
		if err := s.Sync(ctx, path); err != nil {
			t.Fatal(err)
		}
		if ev := recv(t, ch); ev.Type != driver.EventDeleted || ev.Path != path {
			t.Errorf("%s: event %+v", path, ev)
		}
		if ev, open := <-ch; open {
			t.Errorf("%s: a second event: %+v", path, ev)
		}
	}
	if got := zkdriver.WatchChannels(s); got != 0 {
		t.Errorf("%d channels are left after all have fired", got)
	}
}

// settledGoroutines waits until there are at most most goroutines, and returns how
// many there are. If most is 0, it does not wait.
func settledGoroutines(t *testing.T, most int) int {
	t.Helper()
	ctx := within(t, 10*time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		n := runtime.NumGoroutine()
		if most == 0 || n <= most {
			return n
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d goroutines, want at most %d", n, most)
		}
	}
}

// Each call on one connection has a separate channel, even after reconnects. A call
// that failed leaves no channel.
func TestChannelsOfWatches(t *testing.T) {
	hold := make(chan struct{})
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.path() == "/missing" {
				l.reply(r, -101, nil)
				continue
			}
			if r.path() == "/slow" {
				<-hold
			}
			l.succeed(r)
		}
	})
	s := connect(t, p.url())
	three := func() (all []<-chan driver.Event) {
		t.Helper()
		for range 3 {
			_, ch, err := s.Watch(within(t, 10*time.Second), "/a")
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(all, ch) {
				t.Error("two calls on one connection got the same channel")
			}
			all = append(all, ch)
		}
		return all
	}
	first := three()
	p.drop()
	generation(t, s, 2)
	second := three()
	for _, ch := range second {
		if !slices.Contains(first, ch) {
			t.Error("a channel that has not fired was not handed out again after a reconnect")
		}
	}
	if _, ch, err := s.Watch(within(t, 10*time.Second), "/missing"); err == nil || ch != nil {
		t.Errorf("watching a missing node: %v, %v", ch, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, _, err := s.Watch(ctx, "/slow")
		done <- err
	}()
	go cancel()
	matches(t, recv(t, done), context.Canceled)
	close(hold)
	if err := s.Sync(within(t, 10*time.Second), "/"); err != nil { // its reply follows that of the call that was given up
		t.Fatal(err)
	}
	if got := zkdriver.WatchChannels(s); got != 3 {
		t.Errorf("%d channels, want 3", got)
	}
}
