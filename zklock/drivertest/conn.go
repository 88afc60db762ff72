package drivertest

import (
	"errors"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

func connTests() []test {
	return []test{
		{"conn/generation starts at one, with a handshake sent during Connect", func(e *env) {
			before := time.Now()
			s := e.connect()
			after := time.Now()
			generation, sent := s.Conn()
			if generation != 1 || sent.Before(before) || sent.After(after) {
				e.Fatalf("generation %d, handshake sent at %v; want generation 1, sent between %v and %v", generation, sent, before, after)
			}
		}},
		{"conn/does not change while the connection stays", func(e *env) {
			s := e.connect()
			generation, sent := s.Conn()
			_, changed := s.State()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.data(s, e.path("a"), "")
			if g, again := s.Conn(); g != generation || again != sent {
				e.Fatalf("without a reconnect, Conn returned %d and %v, and then %d and %v", generation, sent, g, again)
			}
			select {
			case <-changed:
				e.Fatal("the state channel was closed without a change")
			default:
			}
		}},
		{"conn/generation grows by one with each reconnect, and the handshake is a later one", func(e *env) {
			s := e.connect()
			for want := uint64(2); want <= 3; want++ {
				_, old := s.Conn()
				lost := time.Now()
				e.h.Kill(s)
				e.reconnects(s, want)
				generation, sent := s.Conn()
				if generation != want || sent.Before(lost) || sent.Before(old) || sent.After(time.Now()) {
					e.Fatalf("generation %d, want %d; handshake sent at %v, want after the loss of the connection at %v", generation, want, sent, lost)
				}
				e.read(s, e.root)
			}
		}},
		{"conn/state channel closes when the connection is lost and when it is back", func(e *env) {
			s := e.connect()
			_, lost := s.State()
			heal := e.h.Cut(s)
			e.Cleanup(heal)
			recv(e, lost, "the state channel to close at the loss")
			e.reaches(s, driver.Suspended)
			state, back := s.State()
			if state != driver.Suspended {
				e.Fatalf("a session that is cut off is %v, want suspended", state)
			}
			heal()
			recv(e, back, "the state channel to close at the reconnect")
			e.reaches(s, driver.Connected)
		}},
		{"conn/state channel taken before a reconnect is closed after it", func(e *env) {
			s := e.connect()
			_, first := s.State()
			_, second := s.State()
			e.h.Kill(s)
			e.until("the session has reconnected", func() bool { g, _ := s.Conn(); return g >= 2 })
			recv(e, first, "the state channel to close")
			recv(e, second, "the second state channel to close")
		}},
		{"conn/request made while suspended waits and succeeds when healed", func(e *env) {
			s, other := e.connect(), e.connect()
			heal := e.cut(s)
			done := make(chan error, 1)
			var generation uint64
			go func() {
				_, err := s.Create(e.ctx, e.path("a"), nil, driver.Ephemeral, everyone())
				generation, _ = s.Conn()
				done <- err
			}()
			e.absent(other, e.path("a"))
			select {
			case err := <-done:
				e.Fatalf("create on a suspended session did not wait, and returned %v", err)
			default:
			}
			heal()
			e.ok(recv(e, done, "the create"), "create")
			// The reply came over the new connection, so the generation must have grown
			// before.
			if generation != 2 {
				e.Fatalf("a reply arrived over connection 2 while the generation was %d", generation)
			}
			e.read(other, e.path("a"))
		}},
		{"conn/generation grows before an event of the new connection", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(other, e.path("a"), nil, driver.Persistent)
			_, events := e.watch(s, e.path("a"))
			heal := e.cut(s)
			e.delete(other, e.path("a"))
			at := make(chan uint64, 1)
			go func() {
				<-events
				generation, _ := s.Conn()
				at <- generation
			}()
			heal()
			if generation := recv(e, at, "the event"); generation != 2 {
				e.Fatalf("an event arrived over connection 2 while the generation was %d", generation)
			}
		}},
		{"conn/request in flight when the connection is lost is ErrConnLoss", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(other, e.path("old"), nil, driver.Persistent)
			release := e.hold(s)
			type outcome struct {
				what string
				err  error
			}
			all := calls(e.root)
			done := make(chan outcome, len(all))
			for _, c := range all {
				go func() { done <- outcome{c.name, c.do(e.ctx, s)} }()
			}
			// When all writes have been executed, they have certainly been sent. The
			// requests that only read may not have been, and may fail with ErrNotSent.
			e.until("the writes are executed", func() bool {
				return !e.exists(other, e.path("old")) && e.exists(other, e.path("new")) &&
					e.exists(other, e.path("multi")) && e.read(other, e.root).Stat.Version > 0
			})
			e.h.Kill(s)
			release()
			for range all {
				o := recv(e, done, "a request in flight to end")
				switch o.what {
				case "create", "delete", "set", "multi":
					e.is(o.err, driver.ErrConnLoss, o.what)
				default:
					if !inFlight(o.err) {
						e.Fatalf("%s in flight when the connection was lost: error %v, want none, ErrConnLoss or ErrNotSent", o.what, o.err)
					}
				}
			}
		}},
		{"conn/requests around a loss report their effect correctly", func(e *env) {
			const goroutines = 8
			s, other := e.connect(), e.connect()
			type outcome struct {
				path string
				err  error
			}
			outcomes, stop := make(chan outcome, goroutines), make(chan struct{})
			defer close(stop)
			for g := range goroutines {
				go func() {
					for i := 0; ; i++ {
						path := e.path(strconv.Itoa(g) + "-" + strconv.Itoa(i))
						_, err := s.Create(e.ctx, path, nil, driver.Persistent, everyone())
						select {
						case outcomes <- outcome{path, err}:
						case <-stop:
							return
						}
						if err != nil {
							return
						}
					}
				}()
			}
			check := func(o outcome) {
				switch {
				case o.err == nil && !e.exists(other, o.path):
					e.Fatalf("create of %s returned no error, but the node does not exist", o.path)
				case errors.Is(o.err, driver.ErrNotSent) && e.exists(other, o.path):
					e.Fatalf("create of %s returned ErrNotSent, but the node exists", o.path)
				case !inFlight(o.err):
					e.Fatalf("create of %s when the connection was lost: error %v, want none, ErrConnLoss or ErrNotSent", o.path, o.err)
				}
			}
			for range 5 * goroutines {
				check(recv(e, outcomes, "creates"))
			}
			e.h.Kill(s)
			for range 10 * goroutines {
				select {
				case o := <-outcomes:
					check(o)
				default:
				}
			}
			e.reconnects(s, 2)
			e.read(s, e.root)
		}},
	}
}
