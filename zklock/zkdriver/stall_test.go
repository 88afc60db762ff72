package zkdriver_test

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// asks reports whether a connection asks for the status; if not, it is one of a client.
func asks(l *link) bool {
	begin := make([]byte, 4)
	if _, err := io.ReadFull(l, begin); err != nil || string(begin) != "srvr" {
		l.pushed = begin
		return false
	}
	return true
}

// answer answers a question for the status.
func answer(l *link) { _, _ = io.WriteString(l, "Zookeeper version: 3.8.0\nMode: follower\n") }

// A server that hangs takes a small part of an attempt's time, which is five seconds here, if another
// server answers: two sessions, of which one begins with it, are opened in less than that.
func TestServerThatHangsIsLeftSoon(t *testing.T) {
	hang := newPeer(t, func(l *link) { _, _ = io.Copy(io.Discard, l) }) // until the client gives up
	good := newPeer(t, func(l *link) {
		if asks(l) {
			answer(l)
		} else {
			l.work()
		}
	})
	c := open(t, driver.URL{Scheme: "zk", Hosts: []string{hang.addr(), good.addr()}})
	for range 2 {
		s, err := c.Connect(within(t, 4500*time.Millisecond), 40*time.Second)
		if err != nil {
			t.Fatalf("no session, although %s answers: %v", good.addr(), err)
		}
		defer shut(s)
	}
	if hang.accepted() == 0 {
		t.Error("no session has begun with the server that hangs")
	}
}

// A server that answers, and whose quorum is slow, keeps its attempt: a session that another server
// opens in its place would be one too many. Its answer may be the first or the second one. The other
// server takes a second, and the slow one has at least as long again.
func TestSlowServerIsNotLeft(t *testing.T) {
	for _, second := range []bool{false, true} {
		t.Run(fmt.Sprintf("second=%t", second), func(t *testing.T) {
			t.Parallel()
			var handshakes atomic.Int32
			slow, other := make(chan net.Addr, 1), make(chan struct{}) // from the first handshake on; closed with the answer
			answered := sync.OnceFunc(func() { close(other) })
			script := func(l *link) {
				if !asks(l) {
					if handshakes.Add(1) == 1 {
						slow <- l.LocalAddr()
					}
					time.Sleep(3 * time.Second) // what makes the server slow
					l.work()
					return
				}
				addr := <-slow
				slow <- addr
				switch {
				case addr.String() != l.LocalAddr().String():
					time.Sleep(time.Second)
					answer(l)
					answered()
				case second:
					<-other
					answer(l)
				default:
					answer(l)
				}
			}
			a, b := newPeer(t, script), newPeer(t, script)
			s, err := open(t, driver.URL{Scheme: "zk", Hosts: []string{a.addr(), b.addr()}}).Connect(within(t, 30*time.Second), 40*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer shut(s)
			if n := handshakes.Load(); n != 1 {
				t.Errorf("%d handshakes were begun, want 1", n)
			}
		})
	}
}
