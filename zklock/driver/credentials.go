package driver

import (
	"context"
	"time"
)

// Credentials are what an ensemble asks of a process that takes over a session, as a client
// does after each reconnect. A process that has them can end the session, and with it its locks.
type Credentials struct {
	ID       int64         // the session's id
	Password Secret        // the password that the ensemble has given the session, any bytes
	Timeout  time.Duration // the session's timeout
}

// Credentialed is a [Session] that shows its credentials. A driver whose sessions are
// Credentialed has connectors that are a [SessionCloser].
type Credentialed interface {
	// Credentials returns the session's credentials. They do not change.
	Credentials() Credentials
}

// SessionCloser is a [Connector] that can end sessions that other processes have opened.
type SessionCloser interface {
	// CloseSession ends a session, and so removes its ephemeral znodes. It takes the session
	// over on a connection of its own, and asks the ensemble at once to end it. To take a
	// session over is a sign of its life, and takes it away from the process that uses it: a
	// caller must know that there is none.
	//
	// nil means that the ensemble has answered: it has ended the session, or does not know
	// the session, or not with that password. After any error the session may
	// live on. If the error matches [ErrNotSent], no server has taken it over, as far as is known;
	// if it matches [ErrAuthFailed], another attempt does not help. CloseSession tries each server at most once and does not wait between
	// attempts; it returns early if ctx ends. It is safe for concurrent use.
	CloseSession(ctx context.Context, c Credentials) error
}

// CredentialsOf returns the credentials of a session, or of the session that it wraps and returns
// from a method Unwrap. It returns false if the driver does not show them.
func CredentialsOf(s Session) (Credentials, bool) {
	c, ok := find[Credentialed](s)
	if !ok {
		return Credentials{}, false
	}
	return c.Credentials(), true
}

// CloserOf returns a connector as a [SessionCloser], or the connector that it wraps and returns from
// a method Unwrap. It returns false if the driver cannot end sessions of others.
func CloserOf(c Connector) (SessionCloser, bool) { return find[SessionCloser](c) }

// find returns v as a W, or the first of the values inside it that is one.
func find[W, T any](v T) (W, bool) {
	for {
		if w, ok := any(v).(W); ok {
			return w, true
		}
		u, ok := any(v).(interface{ Unwrap() T })
		if !ok {
			var none W
			return none, false
		}
		v = u.Unwrap()
	}
}
