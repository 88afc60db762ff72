package zkdriver_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// trio starts three servers and opens a session at one of them. That one then breaks the
// connection, and if it stops, it accepts no other. later is called for each later attach, from
// number 1, when the server has granted the session.
func trio(t *testing.T, timeout time.Duration, stops bool, later func(l *link, n int32)) driver.Session {
	t.Helper()
	var attaches atomic.Int32
	first := make(chan *peer, 1)
	var peers [3]*peer
	for i := range peers {
		peers[i] = newPeer(t, func(l *link) {
			l.timeout = timeout
			if _, ok := l.greet(sid); !ok {
				return // a question for the status
			}
			if n := attaches.Add(1) - 1; n > 0 {
				later(l, n)
				return
			}
			first <- peers[i]
			l.admit()
		})
	}
	u := peers[0].url()
	u.Hosts = []string{peers[0].addr(), peers[1].addr(), peers[2].addr()}
	// The servers grant another timeout than this one, which gives an attempt five seconds.
	s, err := open(t, withSASL(u, &turns{last: 1})).Connect(within(t, 30*time.Second), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(s) })
	p := recv(t, first)
	if stops {
		_ = p.Close()
	}
	p.drop()
	reach(t, s, driver.Suspended)
	return s
}

// admit authenticates a session and answers its requests. It reports whether one of them was to
// close it.
func (l *link) admit() (closed bool) {
	l.authenticated("one")
	for {
		r, ok := l.read()
		if !ok {
			return false
		}
		l.succeed(r)
		if r.op == opClose {
			return true
		}
	}
}

// refuse refuses to authenticate a session.
func (l *link) refuse() {
	if r, ok := l.read(); ok {
		l.replyAt(0, r, -115, null)
	}
}

// TestCloseTriesTheOtherServers: one server that refuses to authenticate a session says nothing
// about the others, since only its configuration may be wrong. Servers that break the connection
// say nothing at all: they may be about to stop.
func TestCloseTriesTheOtherServers(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*link)
		first int32 // how many attaches meet that; if fewer than 3, one server is away
	}{
		"after one that refuses": {(*link).refuse, 1},
		"after one that hangs":   {func(l *link) { l.read(); l.read() }, 1},
		"after one that stops":   {func(*link) {}, 1},
		"after each has stopped": {func(*link) {}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attached, closing, closed := make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1)
			release := sync.OnceFunc(func() { close(closing) })
			defer release()
			s := trio(t, 9*time.Second, c.first < 3, func(l *link, n int32) {
				if n > c.first {
					if l.admit() {
						closed <- struct{}{}
					}
					return
				}
				if n == 1 {
					attached <- struct{}{}
				}
				<-closing
				c.do(l)
			})
			recv(t, attached)
			done := make(chan error, 1)
			go func() { done <- s.Close(within(t, 10*time.Second)) }()
			reach(t, s, driver.Closed)
			release()
			if err := recv(t, done); err != nil {
				t.Fatal(err)
			}
			recv(t, closed)
		})
	}
}

// TestSessionIsGivenUp: each attach prolongs the session at the server, also one that is refused.
// While a lease may depend on it, the session tries again. It stops when it has had no connection
// for its timeout, or is closed and each server has refused.
func TestSessionIsGivenUp(t *testing.T) {
	const timeout = 5 * time.Second // the attempts before the end take a part of a second
	// From connection 5 on, the server waits for goOn.
	start := func(t *testing.T, timeout time.Duration, goOn <-chan struct{}) (*peer, driver.Session) {
		refused := make(chan int, 100)
		p := newPeer(t, func(l *link) {
			l.timeout = timeout
			if l.n == 1 {
				l.greet(sid)
				l.admit()
				return
			}
			if l.n > 4 {
				<-goOn
			}
			if asked, ok := l.greet(sid); !ok || asked != sid {
				t.Errorf("connection %d asks for session %#x", l.n, asked)
			}
			select {
			case refused <- l.n: // now: the next connection may be there before refuse returns
			default: // the test waits for the first ones only
			}
			l.refuse()
		})
		s := connect(t, withSASL(p.url(), &turns{last: 1}))
		p.drop()
		for n := 2; n < 5; n++ { // it is not given up at the first refusal
			if got := recv(t, refused); got != n {
				t.Fatalf("connection %d was refused, want %d", got, n)
			}
		}
		return p, s
	}
	t.Run("closed", func(t *testing.T) {
		t.Parallel()
		closing := make(chan struct{})
		release := sync.OnceFunc(func() { close(closing) })
		p, s := start(t, time.Minute, closing)
		defer release()
		began := time.Now()
		done := make(chan error, 1)
		go func() { done <- s.Close(within(t, 30*time.Second)) }()
		reach(t, s, driver.Closed)
		release()
		err := recv(t, done)
		matches(t, err, driver.ErrAuthFailed)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "until the session expires") || took > atOnce {
			t.Errorf("after %v: %v", took, err)
		}
		matches(t, s.Sync(within(t, time.Second), "/"), driver.ErrClosed)
		if n := p.accepted(); n > 6 { // one that was under way, and perhaps one after that
			t.Errorf("%d connections after a close at the third refusal", n)
		}
	})
	t.Run("closed, and each server refuses", func(t *testing.T) {
		t.Parallel()
		closing := make(chan struct{})
		release := sync.OnceFunc(func() { close(closing) })
		defer release()
		var refused sync.Map
		s := trio(t, time.Minute, false, func(l *link, _ int32) {
			<-closing
			refused.Store(l.LocalAddr().String(), true)
			l.refuse()
		})
		done := make(chan error, 1)
		go func() { done <- s.Close(within(t, 30*time.Second)) }()
		reach(t, s, driver.Closed)
		release()
		matches(t, recv(t, done), driver.ErrAuthFailed)
		n := 0
		refused.Range(func(any, any) bool { n++; return true })
		if n != 3 {
			t.Errorf("given up when %d of 3 servers had refused", n)
		}
	})
	// The server that is away might authenticate it, so the session goes on until no lease can
	// depend on it, or the context ends.
	t.Run("closed, and one server is away", func(t *testing.T) {
		t.Parallel()
		s := trio(t, timeout, true, func(l *link, _ int32) { l.refuse() })
		matches(t, s.Close(within(t, 30*time.Second)), driver.ErrAuthFailed)
	})
	t.Run("closed for a short time, and one server is away", func(t *testing.T) {
		t.Parallel()
		s := trio(t, time.Minute, true, func(l *link, _ int32) { l.refuse() })
		began := time.Now()
		matches(t, s.Close(within(t, 300*time.Millisecond)), context.DeadlineExceeded)
		if took := time.Since(began); took > atOnce {
			t.Errorf("Close took %v", took)
		}
	})
	t.Run("without a connection for its timeout", func(t *testing.T) {
		t.Parallel()
		goOn := make(chan struct{})
		close(goOn)
		p, s := start(t, timeout, goOn)
		reach(t, s, driver.Expired)
		n := p.accepted()
		matches(t, s.Sync(within(t, time.Second), "/"), driver.ErrSessionExpired)
		if err := s.Close(within(t, 5*time.Second)); err != nil && !errors.Is(err, driver.ErrAuthFailed) {
			t.Error(err)
		}
		if p.accepted() != n {
			t.Errorf("%d connections after the end", p.accepted()-n)
		}
	})
}
