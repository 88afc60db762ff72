package zkdriver_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// When a session has expired, the client would open a new one and send its queued
// requests there. None of them may reach a server.
func TestExpiryIsForEver(t *testing.T) {
	for name, next := range map[string]int64{"no session": 0, "another session": 0x99} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			var late atomic.Int32
			p := newPeer(t, func(l *link) {
				if l.n == 1 {
					l.work()
					return
				}
				<-release
				if asked, ok := l.greet(next); ok && asked != sid {
					t.Errorf("connection %d asks for session %#x", l.n, asked)
				}
				for {
					r, ok := l.read()
					if !ok {
						return
					}
					late.Add(1)
					l.succeed(r)
				}
			})
			s := connect(t, p.url())
			ctx := within(t, 20*time.Second)
			_, events, err := s.Watch(ctx, "/watched")
			if err != nil {
				t.Fatal(err)
			}
			p.drop()
			reach(t, s, driver.Suspended)
			done := make(chan error, 8)
			for range cap(done) {
				go func() {
					_, err := s.Create(ctx, "/late", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll))
					done <- err
				}()
			}
			close(release)
			for range cap(done) {
				matches(t, recv(t, done), driver.ErrSessionExpired)
			}
			reach(t, s, driver.Expired)
			ev := recv(t, events)
			matches(t, ev.Err, driver.ErrSessionExpired)
			if _, open := <-events; open || ev.Type != driver.EventSession || ev.Path != "/watched" {
				t.Errorf("event %+v, channel open: %v", ev, open)
			}
			matches(t, s.Sync(ctx, "/"), driver.ErrSessionExpired)
			dials := p.accepted()
			if err := s.Close(ctx); err != nil {
				t.Errorf("close: %v", err)
			}
			matches(t, s.Sync(ctx, "/"), driver.ErrClosed)
			if n := p.accepted(); n != dials || n != 2 || late.Load() != 0 {
				t.Errorf("%d connections, %d of them before the expiry, want 2; %d requests in a new session, want none", n, dials, late.Load())
			}
			if s.ID() != sid {
				t.Errorf("the session's id has changed to %#x", s.ID())
			}
		})
	}
}

// A server may also report the end of the session in the reply to a request.
func TestExpiryInAReply(t *testing.T) {
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			l.reply(r, -112, nil)
		}
	})
	s := connect(t, p.url())
	matches(t, s.Sync(within(t, 5*time.Second), "/"), driver.ErrSessionExpired)
	reach(t, s, driver.Expired)
}

// TestConnectionsThatWereOfUseAreFollowedByOthersSoon: each connection answers one
// request before it breaks. If each of them counted as a failure, the pauses would
// add up to more than ten seconds.
func TestConnectionsThatWereOfUseAreFollowedByOthersSoon(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		const conns = 20
		p := virtual(n, 0, func(l *link) {
			l.greet(sid)
			if r, ok := l.read(); ok {
				l.succeed(r)
			}
		})
		s, err := open(t, p.url()).Connect(within(t, 10*time.Second), 4*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(s)
		began := time.Now()
		for i := range uint64(conns) {
			generation(t, s, i+1)
			if err := s.Sync(within(t, atOnce), "/"); err != nil {
				t.Fatalf("connection %d: %v", i+1, err)
			}
		}
		if d := time.Since(began); d > time.Second {
			t.Errorf("the pauses before %d connections add up to %v", conns, d)
		}
	})
}

// The reply to another request could raise the zxid of the request that sets the watches, so
// that they would miss a change. Only credentials are sent before: without them a server may
// answer nothing.
func TestWatchesAreSetBeforeAnythingElse(t *testing.T) {
	t.Run("no user", func(t *testing.T) { testWatchesAreSetFirst(t, (*peer).url, opSetWatch) })
	t.Run("user", func(t *testing.T) {
		testWatchesAreSetFirst(t, func(p *peer) driver.URL { return withUser(p.url()) }, opAuth, opSetWatch)
	})
}

// testWatchesAreSetFirst checks that the first requests on each new connection are
// those in want.
func testWatchesAreSetFirst(t *testing.T, url func(*peer) driver.URL, want ...int32) {
	const (
		reconnects = 5
		watches    = 2000 // so many that other requests would overtake them if they were not held back
	)
	first := make(chan int32, (reconnects+1)*len(want))
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for i := 0; ; i++ {
			r, ok := l.read()
			if !ok {
				return
			}
			if l.n > 1 && i < len(want) {
				first <- r.op
			}
			l.succeed(r)
			if r.op == opSetWatch && l.n == reconnects+1 {
				l.event(2, "/watched")
			}
		}
	})
	s := connect(t, url(p))
	ctx, cancel := context.WithCancel(context.Background())
	_, events, err := s.Watch(ctx, "/watched")
	if err != nil {
		t.Fatal(err)
	}
	for i := range watches {
		if _, _, err := s.Watch(ctx, "/others/"+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	var load sync.WaitGroup
	defer load.Wait()
	defer cancel()
	for range 8 { // at least one request always waits for the new connection
		load.Go(func() {
			for ctx.Err() == nil {
				_ = s.Sync(ctx, "/")
			}
		})
	}
	for range reconnects {
		p.drop()
		for i, op := range want {
			if got := recv(t, first); got != op {
				t.Fatalf("request %d on a new connection is %d, want %d", i, got, op)
			}
		}
	}
	if ev := recv(t, events); ev.Type != driver.EventDeleted || ev.Path != "/watched" || ev.Err != nil {
		t.Errorf("event %+v", ev)
	}
}

// When a server refuses to set watches again, the client only logs that, and the
// watches would be dead from then on.
func TestRefusedWatchesAreSetAgain(t *testing.T) {
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op == opSetWatch && l.n == 2 {
				l.reply(r, -5, nil)
				continue
			}
			l.succeed(r)
			if r.op == opSetWatch {
				l.event(3, "/watched")
			}
		}
	})
	s := connect(t, p.url())
	_, events, err := s.Watch(within(t, 10*time.Second), "/watched")
	if err != nil {
		t.Fatal(err)
	}
	p.drop()
	if ev := recv(t, events); ev.Type != driver.EventChanged {
		t.Errorf("event %+v", ev)
	}
	if g, _ := s.Conn(); g != 3 {
		t.Errorf("generation %d", g)
	}
}
