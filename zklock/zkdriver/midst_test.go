package zkdriver_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// midst is a client at a follower, which falls silent in the midst of what it does. The rival is at the other servers.
type midst struct {
	triad
	t             *testing.T
	client, rival *zklock.Client
	session       int64
	server        int
	began         time.Time // when the server fell silent
}

// strike lets the server fall silent at the next request of the client, before it is executed, or before its reply is sent.
func (m *midst) strike(when wire.Strike) {
	conn := m.n.Of(m.session)
	conn.At(when, func() {
		conn.Silence(wire.Down) // the reply does not arrive
		m.began = time.Now()
		go m.stop(m.server)
	})
}

// take acquires a name.
func (m *midst) take(a zklock.Acquirer) *zklock.Lock {
	l, err := a.Acquire(m.t.Context())
	if err != nil {
		m.t.Error(err)
		m.t.FailNow()
	}
	return l
}

// wait acquires "m" in the client. The channel receives nil if that fails.
func (m *midst) wait() <-chan *zklock.Lock {
	next := make(chan *zklock.Lock, 1)
	go func() {
		l, err := m.client.Mutex("m").Acquire(m.t.Context())
		if err != nil {
			m.t.Error(err)
		}
		next <- l
	}()
	return next
}

// leave releases a lock; its end may go on in the background.
func (m *midst) leave(l *zklock.Lock) {
	if err := l.Release(m.t.Context()); err != nil && !errors.Is(err, zklock.ErrReleasePending) {
		m.t.Error(err)
	}
}

// A server falls silent in the midst of each thing that a client does, before the request is executed or before its reply. The call
// ends two seconds later at most, but for one whose turn comes meanwhile; another lock of the session is kept; the rival is
// kept out of what the client holds, and gets it afterwards, so nothing of the client is left in the queue.
func TestServerFallsSilentInTheMidst(t *testing.T) {
	const most, turn = 2 * time.Second, 3 * time.Second
	for what, c := range map[string]struct {
		most time.Duration
		do   func(m *midst, when wire.Strike) *zklock.Lock // returns the lock on "m" that the client has in the end
	}{
		"a create": {most, func(m *midst, when wire.Strike) *zklock.Lock {
			m.strike(when)
			return m.take(m.client.Mutex("m"))
		}},
		"a create of a name that is known": {most, func(m *midst, when wire.Strike) *zklock.Lock {
			m.leave(m.take(m.client.Mutex("m")))
			m.strike(when)
			return m.take(m.client.Mutex("m"))
		}},
		"a release": {most, func(m *midst, when wire.Strike) *zklock.Lock {
			l := m.take(m.client.Mutex("m"))
			m.strike(when)
			m.leave(l)
			return m.take(m.client.Mutex("m"))
		}},
		"a hand-over": {most, func(m *midst, when wire.Strike) *zklock.Lock {
			l := m.take(m.client.Mutex("m"))
			next := m.wait()
			synctest.Wait()
			m.strike(when)
			_ = l.SetLabel(m.t.Context(), "the request that is struck")
			m.leave(l)
			return <-next
		}},
		"an All": {most, func(m *midst, when wire.Strike) *zklock.Lock {
			m.strike(when)
			return m.take(zklock.All(m.client.Mutex("m"), m.client.Mutex("other")))
		}},
		"a grant, between its reads": {turn, func(m *midst, when wire.Strike) *zklock.Lock {
			l := m.take(m.rival.Mutex("m"))
			next := m.wait()
			<-time.After(100 * time.Millisecond) // it waits
			m.strike(when)
			m.leave(l)
			return <-next
		}},
		"a wait whose predecessor leaves meanwhile": {turn, func(m *midst, when wire.Strike) *zklock.Lock {
			l := m.take(m.rival.Mutex("m"))
			next := m.wait()
			<-time.After(100 * time.Millisecond)
			m.began = time.Now()
			m.stop(m.server)
			m.leave(l)
			return <-next
		}},
		"a Txn": {most, func(m *midst, when wire.Strike) *zklock.Lock {
			l := m.take(m.client.Mutex("m"))
			m.strike(when)
			_, err := l.Txn(m.t.Context(), driver.CreateOp("/data", []byte("1"), driver.Persistent, driver.OpenACL(driver.PermAll)))
			if err != nil && !errors.Is(err, zklock.ErrUnknownOutcome) {
				m.t.Errorf("%v, want no error, or an unknown outcome", err)
			}
			if took := time.Since(m.began); took > most {
				m.t.Errorf("the Txn took %v", took)
			}
			_, found := l.Get(m.t.Context(), "/data")
			if executed := when == wire.BeforeReply; executed && found != nil || err == nil && found != nil {
				m.t.Errorf("executed: %v, error %v, and the znode: %v", executed, err, found)
			}
			return l
		}},
	} {
		for _, when := range []wire.Strike{wire.BeforeRequest, wire.BeforeReply} {
			t.Run(fmt.Sprintf("%s,%d", what, when), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := &midst{triad: newTriad(t, 2*time.Second), t: t}
					m.server = (m.e.Leader() + 1) % 3
					var err error
					m.rival, err = zklock.OpenConfig(zklock.Config{Connector: m.n.Connector("", wire.Addr((m.server+1)%3), wire.Addr((m.server+2)%3)), PoolMaxSessions: 1})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = m.rival.Close() })
					for at := ""; at != wire.Addr(m.server); { // the first server of a session is random
						seated := make(chan zklock.SessionEvent, 10000)
						m.client, _ = m.open(t, 0, 0, zklock.Hooks{Session: func(e zklock.SessionEvent) { seated <- e }})
						if err := m.client.Ping(t.Context()); err != nil {
							t.Fatal(err)
						}
						e := <-seated
						at, m.session = e.Server, e.ID
					}
					witness := m.take(m.client.Mutex("witness"))
					<-time.After(20*time.Second + 123*time.Millisecond) // between two exchanges of the session
					l := c.do(m, when)
					if l == nil {
						return
					}
					if took := time.Since(m.began); m.began.IsZero() || took > c.most {
						t.Errorf("it took %v after the server fell silent, want %v at most", took, c.most)
					}
					if _, err := m.rival.Mutex("m").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrNotAcquired) {
						t.Errorf("the rival has %v, want it to be kept out", err)
					}
					<-time.After(30 * time.Second)
					if !l.Valid() || !witness.Valid() {
						t.Errorf("the move has cost a lock: %v, %v", l.Err(), witness.Err())
					}
					if st := m.client.Stats(); st.Departures != 1 || st.SessionsLost != 0 {
						t.Errorf("%d departures and %d sessions lost, want one move", st.Departures, st.SessionsLost)
					}
					m.leave(l)
					began := time.Now()
					m.leave(m.take(m.rival.Mutex("m")))
					if took := time.Since(began); took > time.Second {
						t.Errorf("the rival has waited for %v: something of the client was left in the queue", took)
					}
				})
			})
		}
	}
}
