package zkdriver_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// purpose is what a connection is for. The client may also close one before it has sent anything.
type purpose int

const (
	nothing purpose = iota
	status          // it asks for the status
	session         // it begins with a handshake
)

// begin returns what a connection is for.
func begin(l *link) purpose {
	first := make([]byte, 4)
	if _, err := io.ReadFull(l, first); err != nil {
		return nothing
	}
	if string(first) == "srvr" {
		return status
	}
	l.pushed = first
	return session
}

// answer answers a question for the status.
func answer(l *link) { _, _ = io.WriteString(l, "Zookeeper version: 3.8.0\nMode: follower\n") }

// A server that hangs is left because another server answers, and not when its attempt's time is up:
// then the reason would be another one. Of two sessions, one begins with it.
func TestServerThatHangsIsLeftSoon(t *testing.T) {
	tried := make(chan struct{}, 10)
	hang := newPeer(t, func(l *link) {
		if begin(l) == session {
			tried <- struct{}{}
		}
		_, _ = io.Copy(io.Discard, l) // until the client gives up
	})
	var c driver.Connector
	good := newPeer(t, func(l *link) {
		switch begin(l) {
		case status:
			answer(l)
		case session:
			select {
			case <-tried:
				said := func() bool {
					err := c.Diagnose()
					return err != nil && strings.Contains(err.Error(), hang.addr()+": it accepts no connection or answers nothing, and another server answers")
				}
				for !said() && t.Context().Err() == nil {
					time.Sleep(time.Millisecond)
				}
			default: // the session begins with this server
			}
			l.work()
		}
	})
	c = open(t, driver.URL{Scheme: "zk", Hosts: []string{hang.addr(), good.addr()}})
	for range 2 {
		s, err := c.Connect(within(t, 30*time.Second), 40*time.Second)
		if err != nil {
			t.Fatalf("no session, although %s answers: %v", good.addr(), err)
		}
		defer shut(s)
	}
	if hang.accepted() == 0 {
		t.Error("no session has begun with the server that hangs")
	}
}
