package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// view is a loop over a Watch that runs in the background. Its test asks for what it has
// reported.
type view struct {
	t      *testing.T
	states chan string // one for each element of the sequence
	stop   context.CancelFunc
}

// watching begins a Watch. The names in its states are the contenders' labels, with a star if
// they hold, and a slash for readers.
func watching(t *testing.T, c *zklock.Client, name string) *view {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	v := &view{t: t, states: make(chan string, 1000), stop: cancel}
	t.Cleanup(cancel)
	go func() {
		defer close(v.states)
		for contenders, err := range c.Watch(ctx, name) {
			if err != nil {
				v.states <- "error: " + err.Error()
				continue
			}
			var b strings.Builder
			for _, c := range contenders {
				b.WriteString(c.Label)
				if c.Mode == zklock.Shared {
					b.WriteString("/")
				}
				if c.Held {
					b.WriteString("*")
				}
				b.WriteString(" ")
			}
			v.states <- strings.TrimSpace(b.String())
		}
	}()
	return v
}

// next checks that exactly these states have been reported since the last call.
func (v *view) next(what string, want ...string) {
	v.t.Helper()
	time.Sleep(time.Second)
	synctest.Wait()
	var got []string
	for len(v.states) > 0 {
		got = append(got, <-v.states)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		v.t.Errorf("%s: reported %q, want %q", what, got, want)
	}
}

func labelled(label string) zklock.AcquireOption { return zklock.WithLabel(label) }

// Watch reports arrivals, departures and grants.
func TestWatchReportsTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		client := func() *zklock.Client { return connect(t, e.Connector(), nil) }
		a, b, c, op := client(), client(), client(), client()
		v := watching(t, op, "x")
		v.next("a name that is not in use", "")
		first := mustLock(t)(a.Mutex("x").Acquire(t.Context(), labelled("a")))
		v.next("the first holder", "a*")
		waiter := acquiring(t, b.Mutex("x"), t.Context(), labelled("b"))
		v.next("a waiter", "a* b")
		reader := acquiring(t, c.RWMutex("x").Reader(), t.Context(), labelled("c"))
		v.next("a reader that waits", "a* b c/")
		mustRelease(t, first)
		second := <-waiter
		v.next("a release and a grant", "b* c/")
		mustRelease(t, second)
		third := <-reader
		v.next("a grant to a reader", "c/*")
		mustRelease(t, third)
		v.next("the last release", "")
		if n := op.Stats().SessionsOpened; n != 1 {
			t.Errorf("%d sessions, want 1", n)
		}
	})
}

// The requests of a Watch, with contenders of another session that costs nothing itself.
func TestWatchCountsItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, s := connect(t, e.Connector(), nil), plain(t, e)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		open := driver.OpenACL(driver.PermAll)
		enter := func(n int, marker string) string {
			t.Helper()
			path, err := s.Create(t.Context(), fmt.Sprintf("/zklock/x/_c_1b9d6bcd-bbfd-4b2d-9b5d-%012x-%s", n, marker), nil, driver.EphemeralSequential, open)
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
		leave := func(path string) {
			t.Helper()
			if err := s.Delete(t.Context(), path, driver.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}
		must := func(_ string, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		ops := func(do func()) memcontrol.Ops {
			time.Sleep(time.Second) // the pause between two looks is over
			got := cost(e, do)
			return memcontrol.Ops{Children: got.Children, WatchChildren: got.WatchChildren, WatchExists: got.WatchExists, Watches: got.Watches, Gets: got.Gets}
		}
		var v *view
		wantCost(t, "a name that is not in use", ops(func() { v = watching(t, c, "x") }), memcontrol.Ops{WatchChildren: 1, WatchExists: 1})
		wantCost(t, "the znode of the name", ops(func() { must(s.Create(t.Context(), "/zklock/x", nil, driver.Persistent, open)) }), memcontrol.Ops{WatchChildren: 1})
		var nodes []string
		wantCost(t, "a holder", ops(func() { nodes = append(nodes, enter(0, "__WRIT__")) }), memcontrol.Ops{WatchChildren: 1, Gets: 1, Watches: 1})
		for i := 1; i < 5; i++ {
			wantCost(t, "a waiter", ops(func() { nodes = append(nodes, enter(i, "__WRIT__")) }), memcontrol.Ops{WatchChildren: 1, Gets: 1})
		}
		nodes = append(nodes, enter(5, "__READ__"))
		wantCost(t, "a waiter in the middle that leaves", ops(func() { leave(nodes[2]) }), memcontrol.Ops{WatchChildren: 1})
		wantCost(t, "a holder that leaves", ops(func() { leave(nodes[0]) }), memcontrol.Ops{WatchChildren: 1, Watches: 1})
		wantCost(t, "a holder that sets its data", ops(func() {
			if _, err := s.Set(t.Context(), nodes[1], []byte(`{"label":"row 5","mode":"exclusive"}`), driver.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}), memcontrol.Ops{Watches: 1})
		wantCost(t, "a waiter that sets its data", ops(func() {
			if _, err := s.Set(t.Context(), nodes[3], nil, driver.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}), memcontrol.Ops{})
		wantCost(t, "the set of the name's znode", ops(func() {
			if _, err := s.Set(t.Context(), "/zklock/x", []byte("zklock"), driver.AnyVersion); err != nil {
				t.Fatal(err)
			}
		}), memcontrol.Ops{})
		leave(nodes[1])
		leave(nodes[3])
		wantCost(t, "a reader's turn", ops(func() { leave(nodes[4]) }), memcontrol.Ops{WatchChildren: 1})
		wantCost(t, "another view", ops(func() { watching(t, c, "x") }), memcontrol.Ops{Children: 1, Gets: 1})
		wantCost(t, "views that end", ops(func() {
			for range 100 {
				for range c.Watch(t.Context(), "x") {
					break
				}
			}
		}), memcontrol.Ops{Children: 100, Gets: 100})
		if n := memcontrol.Of(e).Watched()["/zklock/x"]; n != 1 {
			t.Errorf("%d watches on the name, want one for all views", n)
		}
		v.stop()
	})
}

// A writer that becomes a reader lets other readers hold, although no queue node appears or goes.
// Watch reports that too.
func TestWatchReportsADowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		client := func() *zklock.Client { return connect(t, e.Connector(), nil) }
		a, b, op := client(), client(), client()
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), labelled("a")))
		reader := acquiring(t, b.RWMutex("x").Reader(), t.Context(), labelled("b"))
		v := watching(t, op, "x")
		v.next("a writer and a reader", "a* b/")
		if err := l.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		r := <-reader
		v.next("the downgrade", "a/* b/*")
		mustRelease(t, l)
		mustRelease(t, r)
	})
}

// Changes that follow fast are merged. The last state is always reported.
func TestWatchMergesFastChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		a, op := connect(t, e.Connector(), nil), connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(a.Mutex("x").Acquire(t.Context())))
		v := watching(t, op, "x")
		time.Sleep(time.Second)
		for len(v.states) > 0 {
			<-v.states
		}
		before := memcontrol.Of(e).Ops().WatchChildren
		began := time.Now()
		for range 200 {
			mustRelease(t, mustLock(t)(a.Mutex("x").Acquire(t.Context(), labelled("a"))))
		}
		took := time.Since(began)
		last := mustLock(t)(a.Mutex("x").Acquire(t.Context(), labelled("last")))
		time.Sleep(time.Second)
		looks := memcontrol.Of(e).Ops().WatchChildren - before
		if most := int(took/(50*time.Millisecond)) + 3; looks > most || looks < 3 {
			t.Errorf("%d looks during %v, want from 3 to %d", looks, took, most)
		}
		var state string
		for len(v.states) > 0 {
			state = <-v.states
		}
		if state != "last*" {
			t.Errorf("the last state is %q", state)
		}
		mustRelease(t, last)
	})
}

// A Watch outlives sessions, and outages: these are reported, and do not end it.
func TestWatchGoesOnAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		a, op := connect(t, e.Connector(), nil), connect(t, e.Connector(), map[string]string{"connect_timeout": "5s"})
		l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), labelled("a")))
		v := watching(t, op, "x")
		v.next("a holder", "a*")
		for _, s := range e.Sessions() {
			if contenders, err := a.Contenders(t.Context(), "x"); err != nil || contenders[0].Session != s {
				e.Expire(s) // that of op
			}
		}
		v.next("a new session")
		if op.Stats().SessionsLost != 1 {
			t.Errorf("%d sessions of the watching client were lost, want 1", op.Stats().SessionsLost)
		}
		mustRelease(t, l)
		v.next("a release after that", "")
		e.Partition(memdriver.AroundServer(0), memdriver.AroundClients(0))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		outages := 0
		for len(v.states) > 0 {
			if state := <-v.states; strings.HasPrefix(state, "error: ") && strings.Contains(state, zklock.ErrUnavailable.Error()) {
				outages++
			} else {
				t.Errorf("during the outage: %q", state)
			}
		}
		if outages == 0 || outages > 2*60/4 {
			t.Errorf("%d errors in two minutes with connect_timeout=5s", outages)
		}
		e.Heal()
		time.Sleep(time.Minute)
		synctest.Wait()
		var last string
		for len(v.states) > 0 {
			last = <-v.states
		}
		if last != "" {
			t.Errorf("after the outage: %q, want an empty queue again", last)
		}
		l = mustLock(t)(a.Mutex("x").Acquire(t.Context(), labelled("b")))
		time.Sleep(time.Second)
		for len(v.states) > 0 {
			last = <-v.states
		}
		if last != "b*" {
			t.Errorf("a holder after the outage: %q", last)
		}
		mustRelease(t, l)
	})
}

// A Watch ends with its context, with its loop, and with the client.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		c, err := zklock.OpenConnector(e.Connector())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		why := errors.New("the page was closed")
		n := 0
		for _, err := range c.Watch(ctx, "x") {
			if n++; n == 1 {
				cancel(why)
			} else if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
				t.Errorf("after the end of the context: %v", err)
			}
		}
		if n != 2 {
			t.Errorf("%d elements, want the state and an error", n)
		}
		for range c.Watch(t.Context(), "x") {
			break
		}
		n = 0
		for _, err := range c.Watch(t.Context(), "x") {
			if n++; n == 1 {
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			} else if !errors.Is(err, zklock.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
		}
		if n != 2 {
			t.Errorf("%d elements, want the state and an error", n)
		}
		for name, bad := range map[string]*zklock.Client{"x": nil, "y": {}, "/": c} {
			n := 0
			for _, err := range bad.Watch(t.Context(), name) {
				if n++; err == nil {
					t.Errorf("%q: no error", name)
				}
			}
			if n != 1 {
				t.Errorf("%q: %d elements, want one error", name, n)
			}
		}
	})
}
