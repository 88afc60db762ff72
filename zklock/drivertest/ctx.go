package drivertest

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

func ctxTests() []test {
	return []test{
		{"ctx/that has ended before the call is ErrNotSent, and nothing is sent", func(e *env) {
			s := e.connect()
			e.create(s, e.path("old"), nil, driver.Persistent)
			ctx, cancel := context.WithCancel(e.ctx)
			cancel()
			for _, c := range calls(e.root) {
				err := e.returns(c.name, func() error { return c.do(ctx, s) })
				e.isEnded(err, context.Canceled, driver.ErrNotSent, c.name)
			}
			late, cancel := context.WithTimeout(e.ctx, 0)
			defer cancel()
			for _, c := range calls(e.root) {
				err := e.returns(c.name, func() error { return c.do(late, s) })
				e.isEnded(err, context.DeadlineExceeded, driver.ErrNotSent, c.name)
			}
			if got, stat := e.names(s, e.root), e.read(s, e.root).Stat; !equal(got, "old") || stat.Version != 0 {
				e.Fatalf("calls that must send nothing have changed the children to %q and the version to %d", got, stat.Version)
			}
		}},
		{"ctx/that ends while the session is suspended is ErrNotSent, and nothing is sent later", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("old"), nil, driver.Persistent)
			heal := e.cut(s)
			for _, c := range calls(e.root) {
				ctx, cancel := context.WithTimeout(e.ctx, 20*time.Millisecond)
				err := e.returns(c.name, func() error { return c.do(ctx, s) })
				e.isEnded(err, context.DeadlineExceeded, driver.ErrNotSent, c.name)
				cancel()
			}
			heal()
			e.reconnects(s, 2)
			e.read(s, e.root) // is answered after everything that was queued in the driver
			if got, stat := e.names(other, e.root), e.read(other, e.root).Stat; !equal(got, "old") || stat.Version != 0 {
				e.Fatalf("calls that must send nothing have changed the children to %q and the version to %d", got, stat.Version)
			}
		}},
		{"ctx/that ends after the send is ErrConnLoss", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(other, e.path("old"), nil, driver.Persistent)
			release := e.hold(s)
			for _, c := range calls(e.root) {
				ctx, cancel := context.WithCancel(e.ctx)
				done := make(chan error, 1)
				go func() { done <- c.do(ctx, s) }()
				// Only of a write can the test know that it has been sent.
				switch c.name {
				case "create":
					e.until("the create is executed", func() bool { return e.exists(other, e.path("new")) })
				case "delete":
					e.until("the delete is executed", func() bool { return !e.exists(other, e.path("old")) })
				case "set":
					e.until("the set is executed", func() bool { return e.read(other, e.root).Stat.Version > 0 })
				case "multi":
					e.until("the multi is executed", func() bool { return e.exists(other, e.path("multi")) })
				default:
					cancel()
					_ = recv(e, done, c.name+" to return when its context ends")
					continue
				}
				cancel()
				e.isEnded(recv(e, done, c.name+" to return when its context ends"), context.Canceled, driver.ErrConnLoss, c.name)
			}
			release()
			e.data(s, e.root, "") // the session works on
		}},
		{"ctx/that ends after the reply changes nothing", func(e *env) {
			s := e.connect()
			ctx, cancel := context.WithCancel(e.ctx)
			_, err := s.Create(ctx, e.path("a"), nil, driver.Ephemeral, everyone())
			e.ok(err, "create")
			cancel()
			e.read(s, e.path("a"))
		}},
		{"ctx/with a deadline that has not come changes nothing", func(e *env) {
			s := e.connect()
			ctx, cancel := context.WithTimeout(e.ctx, patience)
			defer cancel()
			e.create(s, e.path("old"), nil, driver.Persistent)
			for _, c := range calls(e.root) {
				e.ok(c.do(ctx, s), c.name)
			}
		}},
	}
}

func closeTests() []test {
	return []test{
		{"close/makes every method fail with ErrClosed", func(e *env) {
			s := e.connect()
			e.create(s, e.path("old"), nil, driver.Persistent)
			e.ok(s.Close(e.ctx), "close")
			for _, c := range calls(e.root) {
				e.is(c.do(e.ctx, s), driver.ErrClosed, c.name)
			}
			if state, _ := s.State(); state != driver.Closed {
				e.Fatalf("a closed session is in the state %v, want closed", state)
			}
		}},
		{"close/closes the state channel", func(e *env) {
			s := e.connect()
			_, changed := s.State()
			e.ok(s.Close(e.ctx), "close")
			recv(e, changed, "the state channel to close")
			if s.ID() == 0 || s.Timeout() == 0 {
				e.Fatalf("a closed session has the id %#x and the timeout %v, want those from before", s.ID(), s.Timeout())
			}
		}},
		{"close/may be called again, and by many goroutines at once", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Ephemeral)
			done := make(chan error, 8)
			for range cap(done) {
				go func() { done <- s.Close(e.ctx) }()
			}
			for range cap(done) {
				e.ok(recv(e, done, "a close to return"), "close")
				e.absent(other, e.path("a"))
			}
			e.ok(s.Close(e.ctx), "close again")
		}},
		{"close/called later waits for the first call, whatever its own context is", func(e *env) {
			s := e.connectShort()
			heal := e.cut(s)
			ctx, cancel := context.WithTimeout(e.ctx, 100*time.Millisecond)
			defer cancel()
			first, later := make(chan error, 1), make(chan error, 1)
			go func() { first <- s.Close(ctx) }()
			e.until("the session closes", func() bool { state, _ := s.State(); return state == driver.Closed })
			ended, end := context.WithCancel(e.ctx)
			end()
			go func() { later <- s.Close(ended) }()
			err := recv(e, first, "the first close to return")
			if again := recv(e, later, "the later close to return"); err == nil || again == nil || again.Error() != err.Error() {
				e.Fatalf("the first close returned %v, and the later one %v, want the same error", err, again)
			}
			heal()
		}},
		{"close/leaves other sessions of the same connector alone", func(e *env) {
			c := e.h.Connector()
			s, other := e.open(c, e.limit(true)), e.open(c, e.limit(true))
			e.create(other, e.path("a"), nil, driver.Ephemeral)
			_, events := e.watch(other, e.path("a"))
			e.ok(s.Close(e.ctx), "close")
			e.silent(other, events, e.path("a"), "after the end of another session")
			if generation, _ := other.Conn(); generation != 1 {
				e.Fatalf("the other session is now on connection %d, want 1", generation)
			}
		}},
		{"close/reports a request in flight as ErrConnLoss", func(e *env) {
			s, other := e.connect(), e.connect()
			release := e.hold(s)
			done := make(chan error, 1)
			go func() {
				_, err := s.Create(e.ctx, e.path("a"), nil, driver.Persistent, everyone())
				done <- err
			}()
			e.until("the create is executed", func() bool { return e.exists(other, e.path("a")) })
			ctx, cancel := context.WithTimeout(e.ctx, 100*time.Millisecond)
			defer cancel()
			if err := e.returns("close", func() error { return s.Close(ctx) }); err == nil {
				e.Fatal("close returned nil, but the ensemble's confirmation was held back")
			}
			e.is(recv(e, done, "the request in flight to end"), driver.ErrConnLoss, "create")
			release()
		}},
		{"close/of a session that is cut off does not outlast its context", func(e *env) {
			s, other := e.connectShort(), e.connect()
			e.create(s, e.path("a"), nil, driver.Ephemeral)
			heal := e.cut(s)
			ctx, cancel := context.WithTimeout(e.ctx, 100*time.Millisecond)
			defer cancel()
			err := e.returns("close", func() error { return s.Close(ctx) })
			if err == nil {
				e.Fatal("close returned nil, but the ensemble cannot have confirmed it")
			}
			if again := s.Close(e.ctx); again == nil || again.Error() != err.Error() {
				e.Fatalf("the first close returned %v, and the second %v", err, again)
			}
			_, err = s.Get(e.ctx, e.root)
			e.is(err, driver.ErrClosed, "get")
			// The ensemble did not get the close, so it expires the session.
			e.until("the session has expired", func() bool { return !e.exists(other, e.path("a")) })
			heal()
		}},
	}
}
