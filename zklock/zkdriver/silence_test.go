package zkdriver_test

import (
	"encoding/binary"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// suspect is a server that gets a session's first request and does not answer it, and the test says what it does then.
// second is another server of the ensemble. Each counts the handshakes with the session.
type suspect struct {
	first, second *peer
	sessions      [2]atomic.Int32
	unanswered    chan func()   // answers the first request
	event         func()        // has the suspect send an event of a watch
	asked         chan struct{} // a question for the status has arrived at second
}

// suspected starts the servers. first says what the suspect does with a question for its status, and second the same for
// the other server; nil: it never answers.
func suspected(n *wire.Network, first, second func(*link)) *suspect {
	s := &suspect{unanswered: make(chan func(), 1), asked: make(chan struct{}, 100)}
	var begun atomic.Bool // the first server of the two that gets the session is the suspect
	script := func(n int) func(*link) {
		return func(l *link) {
			switch begin(l) {
			case status:
				if n == 1 {
					s.asked <- struct{}{}
				}
				if answer := []func(*link){first, second}[n]; answer != nil {
					answer(l)
				} else {
					_, _ = io.Copy(io.Discard, l)
				}
			case session:
				if n == 1 && !begun.Load() {
					return // it begins with the suspect
				}
				if b, ok := l.peek(); ok && binary.BigEndian.Uint64(b[16:]) == 1 { // a session that does not exist
					l.greet(0)
					return
				}
				if s.sessions[n].Add(1); n == 1 || begun.Swap(true) {
					l.work()
					return
				}
				l.greet(sid)
				s.event = func() { l.event(3, "/changed") }
				if r, ok := l.read(); ok {
					s.unanswered <- func() { l.succeed(r) }
				}
				for {
					if r, ok := l.read(); !ok {
						return
					} else if r.op == opClose {
						l.succeed(r)
					}
				}
			}
		}
	}
	s.first, s.second = virtual(n, 0, script(0)), virtual(n, 1, script(1))
	return s
}

// connect opens a session, and sends a request that the suspect leaves unanswered. done receives its error.
func (p *suspect) connect(t *testing.T) (s driver.Session, done <-chan error) {
	u := p.first.url()
	u.Hosts = append(u.Hosts, p.second.addr())
	s, err := open(t, u).Connect(within(t, 30*time.Second), 40*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(s) })
	ended := make(chan error, 1)
	go func() { ended <- s.Sync(within(t, 30*time.Second), "/") }()
	return s, ended
}

func outOfService(l *link) {
	_, _ = io.WriteString(l, "This ZooKeeper instance is not currently serving requests\n")
}

func notListed(l *link) {
	_, _ = io.WriteString(l, "srvr is not executed because it is not in the whitelist.\n")
}

// A server that answers nothing, while another one serves, is left long before the client of go-zookeeper gives the
// connection up, which is 26 s here. So the request ends with the connection.
func TestSilentServerIsLeft(t *testing.T) {
	for what, second := range map[string]func(*link){"status": answer, "no status": notListed} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
				p := suspected(n, nil, second)
				s, done := p.connect(t)
				matches(t, recv(t, done), driver.ErrConnLoss, os.ErrDeadlineExceeded)
				if err := s.Sync(within(t, 10*time.Second), "/"); err != nil {
					t.Error(err)
				}
				if s.Server() != p.second.addr() {
					t.Errorf("the session is at %s, want %s", s.Server(), p.second.addr())
				}
			})
		})
	}
}

// A server that is slow, because its quorum is, answers for its status, and is not left. Neither is one that is silent,
// while no other serves.
func TestServerIsNotLeftWithoutReason(t *testing.T) {
	for what, c := range map[string]struct{ first, second func(*link) }{
		"slow":                                   {answer, answer},
		"slow, without a status":                 {notListed, answer},
		"silent in an election":                  {nil, outOfService},
		"silent, as all of them are":             {nil, func(l *link) { _, _ = io.Copy(io.Discard, l) }},
		"silent, and the other one is read-only": {nil, func(l *link) { _, _ = io.WriteString(l, "Zookeeper version: 3.8.0\nMode: read-only\n") }},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
				p := suspected(n, c.first, c.second)
				s, done := p.connect(t)
				reply := recv(t, p.unanswered)
				<-time.After(3 * time.Second) // what makes the server slow
				reply()
				if err := recv(t, done); err != nil {
					t.Errorf("%v, want the answer", err)
				}
				if g, _ := s.Conn(); g != 1 {
					t.Errorf("the session is on its connection number %d, want the first one", g)
				}
			})
		})
	}
}

// A server that does not answer the question, as one that takes no more connections, is not left if it answers the
// request meanwhile.
func TestServerThatAnswersMeanwhileIsNotLeft(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		answered := make(chan struct{})
		p := suspected(n, nil, func(l *link) {
			<-answered
			answer(l)
		})
		s, done := p.connect(t)
		reply := recv(t, p.unanswered)
		recv(t, p.asked)
		reply()
		if err := recv(t, done); err != nil {
			t.Error(err)
		}
		later := make(chan error, 1)
		go func() { later <- s.Sync(within(t, 30*time.Second), "/later") }() // it is the oldest from now on
		close(answered)
		matches(t, recv(t, later), driver.ErrConnLoss)
		if err := s.Sync(within(t, 10*time.Second), "/"); err != nil {
			t.Error(err)
		}
	})
}

// A server that answers no question, as one that takes no more connections, is not left while anything arrives from it.
func TestServerThatSendsEventsIsNotLeft(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		p := suspected(n, nil, answer)
		s, done := p.connect(t)
		reply := recv(t, p.unanswered)
		for range 15 { // what makes the server slow
			<-time.After(200 * time.Millisecond)
			p.event()
		}
		reply()
		if err := recv(t, done); err != nil {
			t.Errorf("%v, want the answer", err)
		}
		if g, _ := s.Conn(); g != 1 {
			t.Errorf("the session is on its connection number %d, want the first one", g)
		}
	})
}

// A session that has asked in vain for a server that serves asks again: the others may have had an election.
func TestSilentServerIsLeftAfterAnElection(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		var elected atomic.Bool
		p := suspected(n, nil, func(l *link) {
			if elected.Load() {
				answer(l)
			} else {
				outOfService(l)
			}
		})
		s, done := p.connect(t)
		for range 2 {
			recv(t, p.asked)
		}
		elected.Store(true)
		at := time.Now()
		matches(t, recv(t, done), driver.ErrConnLoss)
		if took := time.Since(at); took > 6*time.Second { // the next question is due after a tenth of that
			t.Errorf("the server was left %v after the election", took)
		}
		if err := s.Sync(within(t, 10*time.Second), "/"); err != nil {
			t.Error(err)
		}
	})
}

// Servers that have no room for questions and need long for commits look silent, one after the other. A session that has
// left one waits for longer at the next, until a commit was in time: else no request would ever be answered.
func TestSlowServersAreNotLeftInTurns(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, net *wire.Network) {
		var mu sync.Mutex
		var at *peer // where the session is
		var peers [2]*peer
		var moves atomic.Int32
		script := func(n int) func(*link) {
			return func(l *link) {
				switch begin(l) {
				case status:
					mu.Lock()
					full := at == peers[n]
					mu.Unlock()
					if !full {
						answer(l)
					}
				case session:
					l.timeout = 40 * time.Second
					l.greet(sid)
					moves.Add(1)
					mu.Lock()
					at = peers[n]
					mu.Unlock()
					for {
						r, ok := l.read()
						if !ok {
							return
						}
						if r.op == opSync {
							<-time.After(2 * time.Second) // what makes the server slow
						}
						l.succeed(r)
					}
				}
			}
		}
		mu.Lock()
		for n := range peers {
			peers[n] = virtual(net, n, script(n))
		}
		mu.Unlock()
		u := peers[0].url()
		u.Hosts = append(u.Hosts, peers[1].addr())
		s := connect(t, u)
		answered := 0
		for range 4 {
			if s.Sync(within(t, 20*time.Second), "/") == nil {
				answered++
			}
		}
		if n := moves.Load(); answered < 3 || n > 2 {
			t.Errorf("%d of 4 requests were answered, on %d connections, want 3 on 2", answered, n)
		}
	})
}

// A proxy may lose what is behind a connection, and go on with new ones. So the session makes a new connection, if the
// server answers on others.
func TestForgottenConnectionIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		var first atomic.Bool
		script := func(l *link) {
			switch begin(l) {
			case status:
				answer(l)
			case session:
				l.timeout = 8 * time.Second
				if first.Swap(true) {
					l.work()
					return
				}
				l.greet(sid)
				_, _ = io.Copy(io.Discard, l)
			}
		}
		a, b := virtual(n, 0, script), virtual(n, 1, script)
		u := a.url()
		u.Hosts = append(u.Hosts, b.addr())
		s := connect(t, u)
		at := time.Now()
		matches(t, s.Sync(within(t, 20*time.Second), "/"), driver.ErrConnLoss)
		if took := time.Since(at); took > 5*time.Second { // the client of go-zookeeper gives it up after 5.3s
			t.Errorf("the connection was left after %v, want 3.2s", took)
		}
		if err := s.Sync(within(t, 10*time.Second), "/"); err != nil {
			t.Error(err)
		}
		if quiet, forgotten := s.(driver.Silencer).Silent(); quiet == 0 || !forgotten {
			t.Errorf("silent for %v, forgotten: %v, want both", quiet, forgotten)
		}
	})
}

// A balancer may have a silent server behind a connection, and others behind new ones. The session makes a new
// connection to the only address that it has, once: if requests wait on that one, too, all are slow. Answers from a
// server's memory, such as that to the watches that are set again, show nothing of its commits.
func TestForgottenConnectionIsMadeAgainOnce(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
		var sessions atomic.Int32
		waiting := make(chan func(), 10)
		p := virtual(n, 0, func(l *link) {
			switch begin(l) {
			case status:
				answer(l)
			case session:
				sessions.Add(1)
				l.timeout = 12 * time.Second
				l.greet(sid)
				for {
					r, ok := l.read()
					if !ok {
						return
					}
					if r.op != opSync {
						l.succeed(r)
						continue
					}
					waiting <- func() { l.succeed(r) }
				}
			}
		})
		s := connect(t, p.url())
		if _, _, err := s.Watch(within(t, 10*time.Second), "/"); err != nil {
			t.Fatal(err)
		}
		matches(t, s.Sync(within(t, 20*time.Second), "/"), driver.ErrConnLoss)
		recv(t, waiting)
		done := make(chan error, 1)
		go func() { done <- s.Sync(within(t, 30*time.Second), "/") }()
		reply := recv(t, waiting)
		<-time.After(5 * time.Second) // what makes the server slow
		reply()
		if err := recv(t, done); err != nil {
			t.Errorf("%v, want the answer", err)
		}
		if n := sessions.Load(); n != 2 {
			t.Errorf("%d connections of the session, want 2", n)
		}
	})
}
