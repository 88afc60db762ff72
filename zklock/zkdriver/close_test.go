package zkdriver_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestCloseIsConfirmed(t *testing.T) {
	asked := make(chan struct{}, 1)
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op == opClose {
				asked <- struct{}{}
			}
			l.succeed(r)
		}
	})
	s := connect(t, p.url())
	_, changed := s.State()
	_, events, err := s.Watch(within(t, 5*time.Second), "/a")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(within(t, 5*time.Second)); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	recv(t, asked)
	recv(t, changed)
	matches(t, recv(t, events).Err, driver.ErrClosed)
	if state, _ := s.State(); state != driver.Closed {
		t.Errorf("state %v", state)
	}
	matches(t, s.Sync(within(t, time.Second), "/"), driver.ErrClosed)
}

func TestCloseThatIsNotConfirmed(t *testing.T) {
	for name, script := range map[string]func(l *link){
		"mute": func(l *link) {
			l.greet(sid)
			for {
				if _, ok := l.read(); !ok {
					return
				}
			}
		},
		"hangs up": func(l *link) {
			l.greet(sid)
			l.read()
		},
		"refuses": func(l *link) {
			l.greet(sid)
			for {
				r, ok := l.read()
				if !ok {
					return
				}
				l.reply(r, -1, nil)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, script)
			s := connect(t, p.url())
			ctx := within(t, 300*time.Millisecond)
			start := time.Now()
			first := s.Close(ctx)
			if first == nil {
				t.Error("Close returned nil, though the ensemble has not confirmed it")
			}
			if took := time.Since(start); took > atOnce {
				t.Errorf("Close took %v, longer than its context", took)
			}
			if again := s.Close(context.Background()); again != first {
				t.Errorf("the first Close returned %v, the second %v; want the same error", first, again)
			}
		})
	}
}

// A session that has lost its connection is closed on the next one, if that is made
// in time.
func TestCloseWaitsForAConnection(t *testing.T) {
	release, asked := make(chan struct{}), make(chan struct{}, 1)
	p := newPeer(t, func(l *link) {
		if l.n > 1 {
			<-release
		}
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op == opClose {
				asked <- struct{}{}
			}
			l.succeed(r)
		}
	})
	s := connect(t, p.url())
	p.drop()
	reach(t, s, driver.Suspended)
	done := make(chan error, 1)
	go func() { done <- s.Close(within(t, 10*time.Second)) }()
	reach(t, s, driver.Closed)
	close(release)
	if err := recv(t, done); err != nil {
		t.Errorf("close: %v", err)
	}
	recv(t, asked)
}

// If the ensemble has already expired the session, there is nothing to confirm, and Close returns
// nil.
func TestCloseOfASessionThatTurnsOutToBeExpired(t *testing.T) {
	release := make(chan struct{})
	p := newPeer(t, func(l *link) {
		if l.n == 1 {
			l.work()
			return
		}
		<-release
		l.greet(0)
	})
	s := connect(t, p.url())
	p.drop()
	reach(t, s, driver.Suspended)
	done := make(chan error, 1)
	go func() { done <- s.Close(within(t, 10*time.Second)) }()
	reach(t, s, driver.Closed)
	close(release)
	if err := recv(t, done); err != nil {
		t.Errorf("close: %v", err)
	}
}

// Close waits for the outcomes of requests in flight, and abandons the requests if it cannot wait
// any longer. It must not close the client during a request: that would race with a request that
// creates a container.
func TestCloseWithRequestsInFlight(t *testing.T) {
	for name, answers := range map[string]bool{"answered": true, "mute": false} {
		t.Run(name, func(t *testing.T) {
			arrived, release := make(chan struct{}, 1), make(chan struct{})
			p := newPeer(t, func(l *link) {
				l.greet(sid)
				for {
					r, ok := l.read()
					if !ok {
						return
					}
					if r.op == opContainer {
						arrived <- struct{}{}
						if <-release; !answers {
							continue
						}
					}
					l.succeed(r)
				}
			})
			s := connect(t, p.url())
			created := make(chan error, 1)
			go func() {
				_, err := s.Create(context.Background(), "/c", nil, driver.Container, driver.OpenACL(driver.PermAll))
				created <- err
			}()
			recv(t, arrived)
			closed, limit := make(chan error, 1), atOnce
			if !answers {
				limit = 500 * time.Millisecond
			}
			go func() { closed <- s.Close(within(t, limit)) }()
			reach(t, s, driver.Closed)
			close(release)
			err, closeErr := recv(t, created), recv(t, closed)
			if answers && (err != nil || closeErr != nil) {
				t.Errorf("create: %v, close: %v", err, closeErr)
			}
			if !answers {
				matches(t, err, driver.ErrConnLoss)
				matches(t, closeErr, context.DeadlineExceeded)
			}
		})
	}
}

// The client closes its channel of events when it ends, while Close may still be at work. The
// supervisor waits then, and does not take the processor from it.
func TestSupervisorOfAnEndedClientWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stop := zkdriver.SuperviseEndedClient()
		defer stop()
		stacks := make([]byte, 1<<20)
		for range 1000 {
			runtime.Gosched()
			for g := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
				if strings.Contains(g, ").supervise(") && strings.Contains(g, "[select (durable)") {
					return
				}
			}
		}
		t.Error("the supervisor never waits")
	})
}
