package zkdriver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"time"
)

// A server that falls silent closes no connection: its host has lost its power or its route, its process is stopped.
// On one connection it looks like a server that is slow, because its quorum is. The client of go-zookeeper
// distinguishes them by time alone, and gives a connection up after two thirds of the session timeout. A lease may have
// run out by then. So the session asks. When its oldest request has waited for half of its patience, it asks the
// server for its status, on a connection of its own, and then the other servers. It leaves the server when all of this
// is so:
//
//   - the request has waited for the whole patience, and waits still;
//   - the server has not answered the question, and has had as long for it as the server that did;
//   - another server has answered, and serves clients. Else there is no better one, such as in an election.
//
// A server that is slow answers for its status from memory, at once. To leave a server needs no care of what is under
// way: it is the loss of a connection, which may happen at any time. Requests without an answer have an unknown outcome,
// and the next handshake begins a new chain of the lease.

// patience returns how long a request may wait for its answer before the session leaves a server that is silent. It
// is short enough for a lease: before the request there may be as long as an exchange of the lease is apart from the
// next, and after it the session needs a connection and a write.
func patience(timeout time.Duration) time.Duration {
	return min(max(timeout/8, minPatience), maxPatience, timeout/4)
}

// forgotten returns how long a request may wait for its answer from the only server before the session makes another
// connection.
func forgotten(timeout time.Duration) time.Duration { return max(2*patience(timeout), timeout/4) }

const (
	// maxPatience bounds the patience for long session timeouts: no call has to wait for much longer than usual. A
	// server that pauses for less, such as for a collection of its garbage, is not left.
	maxPatience = 1250 * time.Millisecond

	// minPatience bounds it for short ones.
	minPatience = 500 * time.Millisecond

	// nextServer is how long a server has for its answer before one more server is asked.
	nextServer = 150 * time.Millisecond
)

// errSilent is the reason why the session has left a server.
type errSilent struct{ quiet time.Duration }

// Error implements error.
func (e *errSilent) Error() string {
	return fmt.Sprintf("the server was silent for %v, and another one serves", e.quiet.Round(100*time.Millisecond))
}

// errForgotten is the reason why the session has made a new connection to its only server.
type errForgotten struct{ quiet time.Duration }

// Error implements error.
func (e *errForgotten) Error() string {
	return fmt.Sprintf("the connection was silent for %v, and the server answers on another one", e.quiet.Round(100*time.Millisecond))
}

// isSilence reports whether a connection was given up because its server did not answer.
func isSilence(cause error) bool {
	var silent *errSilent
	var forgotten *errForgotten
	return errors.As(cause, &silent) || errors.As(cause, &forgotten) || cause == errStuck ||
		errors.Is(cause, syscall.ETIMEDOUT) || errors.Is(cause, os.ErrDeadlineExceeded) // by limitUnacknowledged, by the client
}

// word is a server's answer to a question, or the end of the question without one.
type word struct {
	own             bool      // it is about the server that may be silent
	asked           time.Time // when the question began
	answers, serves bool
}

// doubt asks about the server of a connection whose oldest request was written at that time, and leaves the server if
// it is silent and another one serves. Where a URL has one server, that may be a balancer in front of many: then the
// session leaves a connection on which a request has waited for a quarter of the session timeout, once, if it hears on
// another one that the server serves: the only server may be slow. It may do so again when requests are answered in time.
func (s *session) doubt(c *conn, at time.Time) {
	defer s.doubting.Store(false)
	limit, begun := patience(s.Timeout()), time.Now()
	ctx, cancel := context.WithTimeout(s.life, max(limit, time.Until(at.Add(forgotten(s.Timeout())))))
	defer cancel()
	servers := s.dialer.turns.all()
	heard := make(chan word, len(servers))
	ask := func(server string) {
		s.dialer.watching.Go(func() {
			w := word{own: server == c.server, asked: time.Now()}
			w.answers, w.serves = s.dialer.ask(ctx, server)
			heard <- w
		})
	}
	others := slices.DeleteFunc(slices.Clone(servers), func(server string) bool { return server == c.server })
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	only := len(others) == 0
	if only && time.Since(at) < forgotten(s.Timeout()) {
		return // no answer would change anything
	}
	ask(c.server)
	next, leave := time.NewTimer(nextServer), time.NewTimer(time.Hour)
	defer next.Stop()
	defer leave.Stop()
	found := false // another server serves
	for {
		select {
		case w := <-heard:
			switch {
			case w.own && w.answers:
				if w.serves && only {
					s.remake(c, at)
				}
				return
			case w.own:
				next.Reset(0) // it refuses connections, or its network does
			case w.serves && !found:
				// The server has as long for its answer as the other one had, and half of the patience at least.
				found = true
				until := begun.Add(max(limit/2, 2*time.Since(w.asked)))
				leave.Reset(max(time.Until(until), time.Until(at.Add(limit))))
			}
		case <-next.C:
			if len(others) > 0 && !found {
				ask(others[0])
				others = others[1:]
				next.Reset(nextServer)
			}
		case <-leave.C:
			if c.waits(at) {
				c.kill(&errSilent{time.Since(at)})
			}
			return
		case <-ctx.Done():
			return
		}
	}
}

// remake leaves the connection of a server that answers on others.
func (s *session) remake(c *conn, at time.Time) {
	quiet := time.Since(at)
	if quiet >= forgotten(s.Timeout()) && c.waits(at) && !s.strained.Swap(true) {
		c.kill(&errForgotten{quiet})
	}
}
