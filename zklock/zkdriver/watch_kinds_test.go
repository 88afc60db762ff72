package zkdriver_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// missingPeer is a peer without any path that begins with /missing. It collects the lists of
// the watches that each connection sets again.
type missingPeer struct {
	*peer
	mu    sync.Mutex
	lists map[int][3][]string // guarded by mu; by connection
	again map[int][]int       // guarded by mu; by connection, the sizes of the requests that set watches
	link  *link               // guarded by mu; the newest connection
}

func newMissingPeer(t *testing.T) *missingPeer {
	m := &missingPeer{lists: make(map[int][3][]string), again: make(map[int][]int)}
	m.peer = newPeer(t, func(l *link) {
		l.greet(sid)
		m.mu.Lock()
		m.link = l
		m.mu.Unlock()
		for {
			r, ok := l.read()
			switch {
			case !ok:
				return
			case r.op == opSetWatch:
				m.mu.Lock()
				lists := m.lists[l.n]
				for i, paths := range r.lists() {
					lists[i] = append(lists[i], paths...)
					slices.Sort(lists[i])
				}
				m.lists[l.n] = lists
				m.again[l.n] = append(m.again[l.n], 8+len(r.body))
				m.mu.Unlock()
				l.succeed(r)
			case (r.op == opExists || r.op == opGetData || r.op == opChildren) && strings.HasPrefix(r.path(), "/missing"):
				l.reply(r, -101, nil)
			default:
				l.succeed(r)
			}
		}
	})
	return m
}

// event sends an event on the newest connection, and waits until s has read it.
func (m *missingPeer) event(t *testing.T, s driver.Session, kind int32, path string) {
	t.Helper()
	m.mu.Lock()
	l := m.link
	m.mu.Unlock()
	l.event(kind, path)
	if err := s.Sync(within(t, 10*time.Second), "/"); err != nil {
		t.Fatal(err)
	}
}

// arm calls each method that arms a watch, and returns the channels by path and method.
func arm(t *testing.T, s driver.Session) map[string]<-chan driver.Event {
	t.Helper()
	ctx := within(t, 10*time.Second)
	all := make(map[string]<-chan driver.Event)
	keep := func(name string, events <-chan driver.Event, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		all[name] = events
	}
	_, events, err := s.Watch(ctx, "/data")
	keep("data", events, err)
	_, _, events, err = s.WatchChildren(ctx, "/data")
	keep("children", events, err)
	_, found, events, err := s.WatchExists(ctx, "/there")
	keep("there", events, err)
	stat, missing, events, err := s.WatchExists(ctx, "/missing")
	keep("missing", events, err)
	if !found || missing || stat != (driver.Stat{}) {
		t.Errorf("/there exists: %t; /missing exists: %t, with %+v", found, missing, stat)
	}
	return all
}

// TestEachWatchIsSetAgainInItsList: a server compares the lists with the present state in
// different ways, so a watch in a wrong list would never fire, or fire without a change.
func TestEachWatchIsSetAgainInItsList(t *testing.T) {
	const reconnects = 20
	p := newMissingPeer(t)
	s := connect(t, p.url())
	first := arm(t, s)
	for n := range reconnects {
		p.drop()
		generation(t, s, uint64(n)+2)
		if again := arm(t, s); !reflect.DeepEqual(again, first) {
			t.Fatalf("after %d reconnects other channels were handed out, although none has fired", n+1)
		}
		if got := zkdriver.WatchChannels(s); got != len(first) {
			t.Fatalf("after %d reconnects %d channels wait for %d watches", n+1, got, len(first))
		}
	}
	p.mu.Lock()
	for n, lists := range p.lists {
		if want := [3][]string{{"/data", "/there"}, {"/missing"}, {"/data"}}; !reflect.DeepEqual(lists, want) {
			t.Errorf("connection %d set the lists %q again, want %q", n, lists, want)
		}
	}
	if len(p.lists) != reconnects {
		t.Errorf("%d connections have set watches again, want %d", len(p.lists), reconnects)
	}
	p.mu.Unlock()
	if _, events, err := s.Watch(within(t, 10*time.Second), "/missing"); err == nil || events != nil {
		t.Errorf("a read of a missing node returned %v and a channel: %t", err, events != nil)
	}
	if _, _, events, err := s.WatchChildren(within(t, 10*time.Second), "/missing"); err == nil || events != nil {
		t.Errorf("a list of a missing node returned %v and a channel: %t", err, events != nil)
	}
	if got := zkdriver.WatchChannels(s); got != len(first) {
		t.Errorf("%d channels after reads of missing nodes, want %d", got, len(first))
	}
}

// TestEventsEndTheirWatches: each type of event ends the watches that the server's event
// stands for, and no others.
func TestEventsEndTheirWatches(t *testing.T) {
	const created, deleted, changed, children = 1, 2, 3, 4 // event types of the protocol
	p := newMissingPeer(t)
	s := connect(t, p.url())
	open := func(all map[string]<-chan driver.Event) (names []string) {
		for name, ch := range all {
			select {
			case ev, more := <-ch:
				if !more {
					t.Errorf("%s: closed without an event", name)
				}
				names = append(names, fmt.Sprintf("%s %v", name, ev.Type))
			default:
			}
		}
		slices.Sort(names)
		return names
	}
	for _, c := range []struct {
		kind int32
		path string
		want []string
	}{
		{created, "/missing", []string{"missing created"}},
		{changed, "/there", []string{"there changed"}},
		{changed, "/data", []string{"data changed"}},
		{children, "/data", []string{"children children"}},
		{deleted, "/data", []string{"children deleted", "data deleted"}},
		{deleted, "/there", []string{"there deleted"}},
	} {
		all := arm(t, s)
		p.event(t, s, c.kind, c.path)
		if got := open(all); !slices.Equal(got, c.want) {
			t.Errorf("event %d of %s ended %q, want %q", c.kind, c.path, got, c.want)
		}
		// The others stay armed and would be handed out again only after a reconnect.
		p.event(t, s, deleted, "/data")
		p.event(t, s, deleted, "/there")
		p.event(t, s, created, "/missing")
		if got := zkdriver.WatchChannels(s); got != 0 {
			t.Fatalf("%d channels are left after events for all", got)
		}
	}
}

// TestLongListsOfWatchesAreSetInParts: no request is larger than any server reads, and nothing
// is left out or sent twice, also where one list ends and the next begins.
func TestLongListsOfWatchesAreSetInParts(t *testing.T) {
	p := newMissingPeer(t)
	s := connect(t, p.url())
	ctx := within(t, time.Minute)
	var want [3][]string
	long := strings.Repeat("x", 1000)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		for list, read := range []func(context.Context, string) error{
			func(ctx context.Context, path string) error { _, _, err := s.Watch(ctx, path); return err },
			func(ctx context.Context, path string) error { _, _, _, err := s.WatchExists(ctx, path); return err },
			func(ctx context.Context, path string) error { _, _, _, err := s.WatchChildren(ctx, path); return err },
		} {
			path := fmt.Sprintf("/%s-%03d", long, i)
			if list == 1 {
				path = "/missing" + path
			}
			must(read(ctx, path))
			want[list] = append(want[list], path)
		}
	}
	p.drop()
	generation(t, s, 2)
	must(s.Sync(ctx, "/"))
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lists) != 1 {
		t.Fatalf("watches were set again on %d connections, want 1", len(p.lists))
	}
	for n, got := range p.lists {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("connection %d: the lists that were set again differ from those that were armed", n)
		}
		if sizes := p.again[n]; len(sizes) != 75 || slices.Max(sizes) > 4096 {
			t.Errorf("connection %d: %d requests of up to %d bytes for 300 KB of paths, want 75 of up to 4 KiB", n, len(sizes), slices.Max(sizes))
		}
	}
}
