package drivertest

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock/driver"
)

func credentialsTests() []test {
	return []test{
		{"credentials/of a session show its id and its timeout", func(e *env) {
			s := e.connect()
			cred, ok := driver.CredentialsOf(s)
			if !ok {
				e.skip("the driver does not show credentials")
			}
			if cred.ID != s.ID() || cred.Timeout != s.Timeout() || cred.Password.IsZero() {
				e.Fatalf("the credentials are %#x with %v (password: %t), want %#x with %v", cred.ID, cred.Timeout, !cred.Password.IsZero(), s.ID(), s.Timeout())
			}
		}},
		{"credentials/end the session of another connector", func(e *env) {
			s, other := e.connect(), e.connect()
			cred, closer := e.closer(s)
			e.create(s, e.path("e"), nil, driver.Ephemeral)
			e.create(other, e.path("o"), nil, driver.Ephemeral)
			_, events := e.watch(other, e.path("e"))
			// A client that is connected would take its session back, perhaps before the end.
			heal := e.cut(s)
			e.ok(closer.CloseSession(e.ctx, cred), "close by credentials")
			e.absent(other, e.path("e")) // at once, and not when the session expires
			e.fires(events, driver.EventDeleted, e.path("e"))
			heal()
			e.reaches(s, driver.Expired)
			_, err := s.Get(e.ctx, e.root)
			e.is(err, driver.ErrSessionExpired, "get")
			if got := e.names(other, e.root); !equal(got, "o") {
				e.Fatalf("the nodes left are %q, want only that of the other session", got)
			}
			e.over(closer, cred, "close once more")
		}},
		{"credentials/with another password end nothing", func(e *env) {
			s, other := e.connect(), e.connect()
			cred, closer := e.closer(s)
			e.create(s, e.path("e"), nil, driver.Ephemeral)
			cred.Password = driver.NewSecret("0123456789abcdef")
			// The ensemble answers as if there were no such session, or not at all.
			_ = closer.CloseSession(e.ctx, cred)
			// A server may have cut the session's connection before it looked at the password.
			_, err := s.Get(e.ctx, e.path("e"))
			for errors.Is(err, driver.ErrConnLoss) {
				_, err = s.Get(e.ctx, e.path("e"))
			}
			e.ok(err, "get")
			e.read(other, e.path("e"))
		}},
		{"credentials/of a session that is over cause no error", func(e *env) {
			s := e.connectShort()
			cred, closer := e.closer(s)
			e.expire(s)
			e.over(closer, cred, "close an expired session")
			s = e.connect()
			cred, closer = e.closer(s)
			e.ok(s.Close(e.ctx), "close")
			e.over(closer, cred, "close a closed session")
		}},
		{"credentials/are not used after the context has ended", func(e *env) {
			s := e.connect()
			cred, closer := e.closer(s)
			ctx, cancel := context.WithCancel(e.ctx)
			cancel()
			if err := closer.CloseSession(ctx, cred); !errors.Is(err, context.Canceled) {
				e.Fatalf("close by credentials returned %v, want %v", err, context.Canceled)
			}
			e.read(s, e.root)
		}},
		{"credentials/are of no use to a connector that is closed", func(e *env) {
			s := e.connect()
			cred, ok := driver.CredentialsOf(s)
			c := e.h.Connector()
			closer, can := driver.CloserOf(c)
			if !ok || !can {
				e.skip("the driver does not end sessions by credentials")
			}
			e.ok(c.Close(), "close the connector")
			e.is(closer.CloseSession(e.ctx, cred), driver.ErrClosed, "close by credentials")
			e.read(s, e.root)
		}},
	}
}

// closer returns the credentials of s, and another connector that can end it. It skips the test if
// the driver does not do that.
func (e *env) closer(s driver.Session) (driver.Credentials, driver.SessionCloser) {
	e.Helper()
	c := e.h.Connector()
	e.Cleanup(func() { _ = c.Close() })
	cred, ok := driver.CredentialsOf(s)
	closer, can := driver.CloserOf(c)
	if !ok || !can {
		e.skip("the driver does not end sessions by credentials")
	}
	return cred, closer
}

// over closes a session that is over. A server that learns of the end of a session closes the connections that name it,
// without an answer. So to a server that lags, an attempt may come just then; the next one gets the answer.
func (e *env) over(closer driver.SessionCloser, cred driver.Credentials, what string) {
	e.Helper()
	err := closer.CloseSession(e.ctx, cred)
	for errors.Is(err, driver.ErrNotSent) && e.ctx.Err() == nil {
		err = closer.CloseSession(e.ctx, cred)
	}
	e.ok(err, what)
}
