package zkdriver_test

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// status answers a question for the status; false if the connection is one of a client.
func status(l *link) (asked bool) {
	begin := make([]byte, 4)
	if _, err := io.ReadFull(l, begin); err != nil || string(begin) != "srvr" {
		l.pushed = begin
		return false
	}
	_, _ = io.WriteString(l, "Zookeeper version: 3.8.0\nMode: follower\n")
	return true
}

// A server that hangs takes a small part of an attempt's time, which is five seconds here, if another
// server answers: two sessions, of which one begins with it, are opened in less than that.
func TestServerThatHangsIsLeftSoon(t *testing.T) {
	hang := newPeer(t, func(l *link) { _, _ = io.Copy(io.Discard, l) }) // until the client gives up
	good := newPeer(t, func(l *link) {
		if !status(l) {
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
// opens in its place would be one too many.
func TestSlowServerIsNotLeft(t *testing.T) {
	var handshakes atomic.Int32
	script := func(l *link) {
		if status(l) {
			return
		}
		handshakes.Add(1)
		time.Sleep(time.Second) // what makes the server slow
		l.work()
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
}
