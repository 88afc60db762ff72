package memdriver_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestTimeoutIsClamped: at every handshake, the timeout is limited to between 2 and
// 20 ticks.
func TestTimeoutIsClamped(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		for ask, granted := range map[time.Duration]time.Duration{
			time.Millisecond: 2 * time.Second, 5 * time.Second: 5 * time.Second, time.Hour: 20 * time.Second,
		} {
			if got := connect(t, e.Connector(), ask).Timeout(); got != granted {
				t.Fatalf("asked for %v, granted %v", ask, got)
			}
		}
		s := connect(t, e.Connector(), 15*time.Second)
		e.MaxTimeout(0, 6*time.Second)
		e.KillConnection(s.ID())
		pass(100 * time.Millisecond)
		if got := s.Timeout(); got != 6*time.Second {
			t.Fatalf("timeout %v after a reconnect, want 6s", got)
		}
	})
}

// TestExpiryIsRoundedUp: a session expires at a whole tick, and its client learns of
// that only when it is connected again.
func TestExpiryIsRoundedUp(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		pass(300 * time.Millisecond)
		s := connect(t, e.Connector(), 3*time.Second)
		other := connect(t, e.Connector(), 20*time.Second)
		create(t, s, "/e", driver.Ephemeral)
		_, events, err := other.Watch(t.Context(), "/e")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		e.Partition(memdriver.AroundSession(s.ID()))
		ev := <-events
		if took := time.Since(began); ev.Type != driver.EventDeleted || took != 3700*time.Millisecond {
			t.Fatalf("event %v after %v, want a deletion at the next whole second after 3 s", ev.Type, took)
		}
		synctest.Wait()
		if state(s) != driver.Suspended {
			t.Fatalf("the client that is cut off reports state %v", state(s))
		}
		e.Heal()
		_, err = s.Get(t.Context(), "/")
		want(t, err, driver.ErrSessionExpired, "get")
		if state(s) != driver.Expired {
			t.Fatalf("%v", state(s))
		}
	})
}

// TestGenerationGrowsFirst: when a request is answered on a new connection, the
// generation has grown already, and the time of the handshake is set.
func TestGenerationGrowsFirst(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		gen, sent := s.Conn()
		if gen != 1 || time.Since(sent) != 20*time.Millisecond {
			t.Fatalf("generation %d, sent %v ago, want generation 1 and a handshake of two hops (20ms)", gen, time.Since(sent))
		}
		for range 50 {
			_, changed := s.State()
			seen := make(chan uint64, 1)
			go func() {
				_, _ = s.Get(t.Context(), "/")
				g, _ := s.Conn()
				seen <- g
			}()
			e.KillConnection(s.ID())
			<-changed
			killed := time.Now()
			if _, err := s.Get(t.Context(), "/"); err != nil {
				t.Fatal(err)
			}
			<-seen
			g, at := s.Conn()
			if g != gen+1 || at.Before(killed) {
				t.Fatalf("generation %d after %d, handshake %v after the kill", g, gen, at.Sub(killed))
			}
			gen = g
		}
	}, memdriver.WithLatency(10*time.Millisecond))
}

// TestOldReplyIsNotDelivered: messages that the old connection still brings are
// dropped.
func TestOldReplyIsNotDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 6*time.Second)
		release := e.HoldReplies(s.ID())
		_, err := s.Create(t.Context(), "/a", nil, driver.Persistent, open)
		want(t, err, driver.ErrConnLoss, "create")
		pass(time.Second)
		release()
		if gen, _ := s.Conn(); gen != 2 || !has(t, s, "/a") {
			t.Fatalf("generation %d: want the create applied and its answer lost", gen)
		}
	})
}

// TestWatchesSurviveReconnects: changes while the client is disconnected are reported
// when it is connected again. A watch on an unchanged node stays armed.
func TestWatchesSurviveReconnects(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		other := connect(t, e.Connector(), 10*time.Second)
		events := make(map[string]<-chan driver.Event)
		for _, path := range []string{"/gone", "/set", "/same"} {
			create(t, s, path, driver.Persistent)
			_, ch, err := s.Watch(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			events[path] = ch
		}
		cut := memdriver.AroundSession(s.ID())
		e.Partition(cut.Reset())
		if n := e.WatchCount(); n != 0 {
			t.Fatalf("%d watches are armed for a connection that is closed", n)
		}
		if err := other.Delete(t.Context(), "/gone", driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Set(t.Context(), "/set", nil, driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		e.Heal(cut)
		if ev := <-events["/gone"]; ev.Type != driver.EventDeleted || ev.Err != nil {
			t.Fatalf("%+v", ev)
		}
		if ev := <-events["/set"]; ev.Type != driver.EventChanged || ev.Err != nil {
			t.Fatalf("%+v", ev)
		}
		if n := e.WatchCount(); n != 1 {
			t.Fatalf("%d watches are armed, want only the one on the unchanged node", n)
		}
		select {
		case ev := <-events["/same"]:
			t.Fatalf("event %+v for an unchanged znode", ev)
		default:
		}
		if _, err := other.Set(t.Context(), "/same", nil, driver.AnyVersion); err != nil {
			t.Fatal(err)
		}
		if ev := <-events["/same"]; ev.Type != driver.EventChanged {
			t.Fatalf("%+v", ev)
		}
	})
}

// TestCloseAcrossLostConnection: when the answer to the end of the session is lost,
// the request is sent again, and the session proves to be over.
func TestCloseAcrossLostConnection(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 6*time.Second)
		create(t, s, "/e", driver.Ephemeral)
		e.HoldReplies(s.ID())
		began := time.Now()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 2*time.Second {
			t.Fatalf("Close returned after %v, though no answer had arrived", took)
		}
		if len(e.Sessions()) != 0 {
			t.Fatalf("sessions left: %x", e.Sessions())
		}
	})
}

// TestQuiet: after the last session has ended, closed or expired, nothing is scheduled.
func TestQuiet(t *testing.T) {
	for _, servers := range []int{1, 3} {
		bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
			if !e.Quiet() {
				t.Fatal("events are scheduled before the first session")
			}
			s := connect(t, e.Connector(), 6*time.Second)
			lost := connect(t, e.Connector(), 6*time.Second)
			e.KillConnection(s.ID())
			e.Partition(memdriver.AroundSession(lost.ID()))
			pass(20 * time.Second)
			e.Heal()
			pass(20 * time.Second)
			if state(lost) != driver.Expired {
				t.Fatalf("%v", state(lost))
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(2 * time.Second)
			if !e.Quiet() {
				t.Fatalf("events are still scheduled:\n%s", e.Dump())
			}
			pass(time.Hour)
			s = connect(t, e.Connector(), 6*time.Second)
			create(t, s, "/e", driver.Ephemeral)
			pass(time.Minute)
			if !has(t, s, "/e") {
				t.Fatal("a node of the first session after an idle hour was lost")
			}
		}, memdriver.WithServers(servers))
	}
}

// TestCloseIsAskedForAgain: the request is sent again if it was lost on its way to
// the server.
func TestCloseIsAskedForAgain(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 6*time.Second)
		e.HoldRequests(s.ID())
		closed := make(chan error, 1)
		go func() { closed <- s.Close(t.Context()) }()
		pass(10 * time.Millisecond)
		e.KillConnection(s.ID())
		pass(100 * time.Millisecond)
		select {
		case err := <-closed:
			if err != nil || len(e.Sessions()) != 0 {
				t.Fatalf("%v, sessions left: %x", err, e.Sessions())
			}
		default:
			t.Fatal("Close has not returned")
		}
	})
}
