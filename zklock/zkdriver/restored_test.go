package zkdriver_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// restored answers the handshakes of sessions as a server does whose newest transaction is newest: it
// closes the connection of a client that has seen a later one. It knows no session from before.
func (l *link) restored(newest uint64) {
	b, err := l.readFrame()
	if err != nil || len(b) < 24 {
		return
	}
	if zxid(b) <= newest {
		l.welcome(0)
	}
}

func zxid(connectRequest []byte) (seen uint64) {
	for _, c := range connectRequest[4:12] {
		seen = seen<<8 | uint64(c)
	}
	return seen
}

// A session whose ensemble was restored to an older state is neither connected nor expired. Diagnose says
// why, until the session is closed. Close confirms at once that the session is over: it needs no server
// that knows what the session has seen.
func TestSessionOfARestoredEnsemble(t *testing.T) {
	var tried atomic.Int32
	p := newPeer(t, func(l *link) {
		if l.n == 1 {
			l.work() // its replies have the zxid 7
			return
		}
		tried.Add(1)
		l.restored(6)
	})
	c := open(t, p.url())
	s, err := c.Connect(within(t, 10*time.Second), 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	if err := c.Diagnose(); err != nil {
		t.Errorf("Diagnose with a connection: %v, want nil", err)
	}
	p.drop()
	reach(t, s, driver.Suspended)
	wait.Until(t, "the server closes a second connection", func() bool { return tried.Load() > 1 })
	why := c.Diagnose()
	if why == nil || !strings.Contains(why.Error(), "the session has no connection: "+p.addr()+": closed the connection") || !strings.Contains(why.Error(), "transaction 0x7") ||
		errors.Is(why, zkdriver.ErrNotZooKeeper) || !errors.Is(why, driver.ErrNotSent) {
		t.Errorf("Diagnose: %v, want that the server does not know transaction 0x7", why)
	}
	t.Log(why)
	if state, _ := s.State(); state != driver.Suspended {
		t.Errorf("the session is %v", state)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := c.Diagnose(); err != nil {
		t.Errorf("Diagnose without a session: %v, want nil", err)
	}
}
