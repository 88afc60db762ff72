package zkdriver_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ports"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestConnectTakesWhatTheHandshakeSays(t *testing.T) {
	p := newPeer(t, func(l *link) {
		l.timeout = 2500 * time.Millisecond
		l.work()
	})
	before := time.Now()
	s := connect(t, p.url())
	if s.ID() != sid || s.Timeout() != 2500*time.Millisecond || s.Server() != p.addr() {
		t.Errorf("id %#x, timeout %v, server %q", s.ID(), s.Timeout(), s.Server())
	}
	g, sent := s.Conn()
	if g != 1 || sent.Before(before) || sent.After(time.Now()) {
		t.Errorf("generation %d, sent %v", g, sent)
	}
	if state, _ := s.State(); state != driver.Connected {
		t.Errorf("state %v", state)
	}
}

// The driver must recognize at once that a peer is not a ZooKeeper server, whatever
// time the session timeout and the context allow.
func TestConnectToSomethingElseFailsAtOnce(t *testing.T) {
	for name, answer := range map[string][]byte{
		"HTTP":             []byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"),
		"TLS alert":        {0x15, 3, 1, 0, 2, 2, 40},
		"giant frame":      {0x3f, 0xff, 0xff, 0xff, 1, 2, 3},
		"257 bytes":        append([]byte{0, 0, 1, 1}, make([]byte, 257)...),
		"small frame":      {0, 0, 0, 4, 0, 0, 0, 0},
		"other version":    append([]byte{0, 0, 0, 37, 0, 0, 0, 9}, make([]byte, 33)...),
		"no session":       append([]byte{0, 0, 0, 20}, make([]byte, 20)...),
		"password too big": append([]byte{0, 0, 0, 37}, bytes.Repeat([]byte{0, 0, 0, 1}, 10)[:37]...),
		"a few bytes":      []byte("hi"),
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, func(l *link) {
				if _, err := l.readFrame(); err == nil {
					_, _ = l.Write(answer)
					if name == "a few bytes" {
						return
					}
					_, _ = l.readFrame() // until the client gives up
				}
			})
			start := time.Now()
			_, err := open(t, p.url()).Connect(within(t, 4*atOnce), 10*time.Second)
			if took := time.Since(start); took > atOnce {
				t.Errorf("Connect took %v, want it to fail at once", took)
			}
			matches(t, err, zkdriver.ErrNotZooKeeper, driver.ErrNotSent)
			if err != nil && !strings.Contains(err.Error(), p.addr()) {
				t.Errorf("error %q does not name the server", err)
			}
			if err != nil && name == "no session" && !strings.Contains(err.Error(), "with session 0") {
				t.Errorf("error %q does not say that the peer granted no session", err)
			}
		})
	}
}

func TestConnectToOneThatOnlyClosesGivesUpSoon(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		p := virtual(n, 0, func(*link) {})
		start := time.Now()
		_, err := open(t, p.url()).Connect(within(t, 10*time.Second), 10*time.Second)
		if took := time.Since(start); took < time.Second || took > 2*time.Second { // the last pause takes a second at most
			t.Errorf("Connect took %v, want a second and the pause that has begun: %v", took, err)
		}
		matches(t, err, zkdriver.ErrNotZooKeeper, driver.ErrNotSent)
		// Attempts have pauses of 20, 40, 80... ms between them, for a second.
		if n := p.accepted(); n < 2 || n > 20 {
			t.Errorf("%d attempts in about a second", n)
		}
	})
}

// A caller's time often ends while an attempt on a server is under way. Then the error says what
// the server did to the session before, which is more useful than "no answer yet".
func TestConnectSaysWhatTheServerDidBefore(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		var hangs atomic.Bool
		asked := make(chan struct{}, 10)
		p := virtual(n, 0, func(l *link) {
			if hangs.Load() {
				_, _ = l.readFrame()
				asked <- struct{}{}
				_, _ = l.readFrame() // until the client gives up
			}
		})
		c := open(t, p.url())
		if _, err := c.Connect(within(t, 10*time.Second), 10*time.Second); !errors.Is(err, zkdriver.ErrNotZooKeeper) {
			t.Fatalf("%v, want ErrNotZooKeeper", err)
		}
		hangs.Store(true)
		for range 3 { // an attempt that was cut off says nothing of the server
			ctx, cancel := context.WithCancel(within(t, 10*time.Second))
			go func() {
				<-asked
				cancel()
			}()
			_, err := c.Connect(ctx, 10*time.Second)
			matches(t, err, context.Canceled, driver.ErrNotSent)
			if err != nil && !strings.Contains(err.Error(), "closed the connection before it answered") {
				t.Errorf("error %q does not say what the server did before", err)
			}
		}
	})
}

// A caller may ask for the reason at any time: while the first attempt is under way, when Connect has
// failed, and when the next one has only begun.
func TestDiagnoseKnowsTheReasonAtAnyTime(t *testing.T) {
	hang := newPeer(t, func(l *link) { _, _ = l.readFrame(); _, _ = l.readFrame() })
	for _, c := range []struct{ addr, says, later string }{
		{ports.Refusing(t), "connection refused", "connection refused"},
		{hang.addr(), "connected, but got no ZooKeeper answer yet", "connected, but got no ZooKeeper answer"},
	} {
		connector := open(t, driver.URL{Scheme: "zk", Hosts: []string{c.addr}})
		connect := func() (stop func()) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				if _, err := connector.Connect(ctx, time.Minute); !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want that the context has ended", err)
				}
			}()
			return func() { cancel(); <-ended }
		}
		says := func(text string) bool {
			err := connector.Diagnose()
			return err != nil && strings.Contains(err.Error(), c.addr+": ") && strings.Contains(err.Error(), text)
		}
		stop := connect()
		wait.Until(t, c.says, func() bool { return says(c.says) })
		var others []func()
		for range 50 { // sessions that have met no server yet do not hide what the first has met
			others = append(others, connect())
			for range 20 {
				if !says(c.later) {
					t.Errorf("while others begin to connect, Diagnose returns %v, want %q", connector.Diagnose(), c.later)
				}
				runtime.Gosched()
			}
		}
		for _, end := range others {
			end()
		}
		stop()
		if !says(c.later) {
			t.Errorf("after a Connect that has failed, Diagnose returns %v, want %q", connector.Diagnose(), c.later)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := connector.Connect(over, time.Minute)
		matches(t, err, context.Canceled, driver.ErrNotSent)
		if err != nil && !strings.Contains(err.Error(), c.later) {
			t.Errorf("a Connect that comes too late fails with %q, which does not say %q", err, c.later)
		}
		for range 20 { // the dial has begun, or it has not
			stop = connect()
			for range 20 {
				if err := connector.Diagnose(); !says(c.later) || errors.Is(err, context.Canceled) {
					t.Errorf("while the next Connect begins, Diagnose returns %v, want %q", err, c.later)
				}
				runtime.Gosched()
			}
			stop()
		}
	}
}

// A server that was not a ZooKeeper server before may be one by now: what an earlier session has
// met there does not end a search.
func TestConnectForgetsAPermanentFailure(t *testing.T) {
	var hangs atomic.Bool
	asked := make(chan struct{}, 10)
	p := newPeer(t, func(l *link) {
		_, _ = l.readFrame()
		if !hangs.Load() {
			_, _ = l.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			return
		}
		asked <- struct{}{}
		_, _ = l.readFrame() // until the client gives up
	})
	c := open(t, p.url())
	_, err := c.Connect(within(t, 4*atOnce), 10*time.Second)
	matches(t, err, driver.ErrProtocol)
	hangs.Store(true)
	ctx, cancel := context.WithCancel(within(t, 4*atOnce))
	go func() {
		<-asked
		cancel()
	}()
	if _, err := c.Connect(ctx, 10*time.Second); errors.Is(err, driver.ErrProtocol) {
		t.Errorf("%v, which matches ErrProtocol", err)
	}
}

func TestConnectWithClosedConnector(t *testing.T) {
	asked := make(chan struct{}, 1)
	hang := newPeer(t, func(l *link) {
		_, _ = l.readFrame()
		asked <- struct{}{}
		_, _ = l.readFrame()
	})
	c := open(t, hang.url())
	done := make(chan error, 1)
	go func() {
		_, err := c.Connect(context.Background(), 10*time.Second)
		done <- err
	}()
	recv(t, asked)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	matches(t, recv(t, done), driver.ErrClosed)
	_, err := c.Connect(context.Background(), time.Second)
	matches(t, err, driver.ErrClosed)
}

func TestConnectRefusesImpossibleTimeouts(t *testing.T) {
	p := newPeer(t, (*link).work)
	for _, d := range []time.Duration{-1, 0, time.Microsecond, 30 * 24 * time.Hour} {
		_, err := open(t, p.url()).Connect(within(t, time.Second), d)
		matches(t, err, driver.ErrBadArguments)
	}
	if p.accepted() != 0 {
		t.Error("a server was dialled")
	}
}
