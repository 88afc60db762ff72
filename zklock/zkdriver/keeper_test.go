package zkdriver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// keeper is a peer that does what ClickHouse Keeper does: each handshake gets a new session, whichever one it names,
// with a password of 16 zeros.
func keeper(t *testing.T, requests chan<- int32) *peer {
	return newPeer(t, func(l *link) {
		l.keeper = true
		if _, ok := l.greet(int64(l.n)); !ok {
			return
		}
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			requests <- r.op
			l.succeed(r)
		}
	})
}

// Sessions of ClickHouse Keeper are refused at once, by the handshake alone.
func TestKeeperIsRefused(t *testing.T) {
	requests := make(chan int32, 100)
	p := keeper(t, requests)
	start := time.Now()
	_, err := open(t, p.url()).Connect(within(t, 4*atOnce), 10*time.Second)
	if took := time.Since(start); took > atOnce {
		t.Errorf("Connect took %v, want it to fail at once", took)
	}
	matches(t, err, zkdriver.ErrNotZooKeeper, driver.ErrProtocol, driver.ErrNotSent)
	if err == nil || !strings.Contains(err.Error(), "it is ClickHouse Keeper") || !strings.Contains(err.Error(), "allow_keeper=true") {
		t.Errorf("Connect: %v", err)
	}
	if len(requests) > 0 {
		t.Errorf("it got a request of the kind %d", <-requests)
	}
}

// With allow_keeper its sessions work, and end with their connection, since the next handshake gets another one.
func TestKeeperIsAllowed(t *testing.T) {
	requests := make(chan int32, 100)
	p := keeper(t, requests)
	u := p.url()
	u.Params = map[string][]string{"allow_keeper": {"true"}}
	s := connect(t, u)
	if _, err := s.Get(within(t, 10*time.Second), "/x"); err != nil {
		t.Fatal(err)
	}
	if op := <-requests; op != opGetData {
		t.Errorf("the request is of the kind %d", op)
	}
	p.drop()
	reach(t, s, driver.Expired)
}
