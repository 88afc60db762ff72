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
//   - a request has waited for the whole patience, and nothing else has arrived meanwhile;
//   - the server has not answered the question, and has had as long for it as the server that did;
//   - another server has answered, and serves clients. Else there is no better one, such as in an election.
//
// Anything that arrives on the connection is a sign of life, such as an event of a watch: unheard. As long as no other server
// serves, as in an election, doubt asks them again each patience. After a move the session waits for longer, until a
// commit was in time: limit. A connection may be silent whose server answers on others. It is left soon if the kernel
// says that the network drops what is sent on it: unacknowledged. Else it is left later: forgotten and mayRemake.
// The chapter about the lease in DESIGN.md has the mutants of these rules.
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

// forgotten returns how long a connection may be silent before the session makes another one, if the server answers on
// others. One server of several may be a follower whose leader is silent: at first it looks the same. Where users have
// the default session timeout, and the servers theirs of syncLimit, it has noticed by the time that this returns.
func forgotten(timeout time.Duration, servers int) time.Duration {
	if servers > 1 {
		return timeout * 2 / 5
	}
	return max(2*patience(timeout), timeout/4)
}

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

// errForgotten is the reason why the session has left a connection whose server answers on others.
type errForgotten struct{ quiet time.Duration }

// Error implements error.
func (e *errForgotten) Error() string {
	return fmt.Sprintf("the connection was silent for %v, and the server answers on others", e.quiet.Round(100*time.Millisecond))
}

// isSilence reports whether a connection was given up because its server did not answer.
func isSilence(cause error) bool {
	var silent *errSilent
	var forgotten *errForgotten
	return errors.As(cause, &silent) || errors.As(cause, &forgotten) || cause == errStuck ||
		errors.Is(cause, syscall.ETIMEDOUT) || errors.Is(cause, os.ErrDeadlineExceeded) // by limitUnacknowledged, by the client
}

// quiet returns for how long the server of a connection has not answered that is given up because of that; else 0. Its server
// answers on other connections if it was left for that, or if the network acknowledges nothing, and the server has answered a
// question since.
func (c *conn) quiet(cause error) (d time.Duration, forgotten bool) {
	at, waits := c.oldest()
	if !waits || !isSilence(cause) {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Since(at), errors.As(cause, new(*errForgotten)) || errors.Is(cause, syscall.ETIMEDOUT) && c.vouched.After(at)
}

// word is a server's answer to a question, or the end of the question without one.
type word struct {
	own             bool      // it is about the server that may be silent
	asked           time.Time // when the question began
	answers, serves bool
}

// doubt asks about the server of a connection that has given no sign of life since then, although a request waits. It
// leaves the server if it is silent and another one serves. And it leaves a connection whose server answers on another
// one, if nothing is acknowledged on it, or if nothing has arrived on it for long: see mayRemake.
func (s *session) doubt(c *conn, since time.Time) {
	defer s.doubting.Store(false)
	names := s.dialer.config.names
	names.refresh(s.dialer.life, &s.dialer.watching) // the others may have other addresses than at the last attempt
	asked := make(map[string]bool)
	own := c.raw.RemoteAddr().String() // its name may have another address by now, which is another server
	asked[c.server] = names.address(c.server) == own
	others := func() []string { // that were not asked
		return slices.DeleteFunc(names.now(), func(server string) bool { return asked[server] })
	}
	if _, may := s.mayRemake(c); len(others()) == 0 && !may {
		return // no answer would change anything
	}
	limit, begun := s.limit(), time.Now()
	round := patience(s.Timeout())
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	heard := make(chan word)
	ask := func(at, server string) {
		s.dialer.watching.Go(func() {
			w := word{own: server == c.server && at == own, asked: time.Now()}
			w.answers, w.serves = s.dialer.ask(ctx, at, names.name(server))
			select {
			case heard <- w:
			case <-ctx.Done():
			}
		})
	}
	ask(own, c.server)
	mute := 0 // others that were asked, without a word so far
	// All clients of a server may have begun to wait at the same instant.
	next, leave, end := time.NewTimer(nextServer/2+rand.N(round/4)), time.NewTimer(time.Hour), time.NewTimer(round)
	defer next.Stop()
	defer leave.Stop()
	defer end.Stop()
	found := false // another server serves
	for !c.killed.Load() {
		select {
		case w := <-heard:
			if !w.own {
				mute--
			}
			switch {
			case w.own && w.answers:
				c.vouch()
				if quiet, may := s.mayRemake(c); may && w.serves {
					s.strained.Store(true)
					c.kill(&errForgotten{quiet})
				}
				return
			case w.own:
				next.Reset(0) // it refuses connections, or its network does
			case w.serves && !found:
				// The server has as long for its answer as the other one had, and half of the patience at least.
				found = true
				until := begun.Add(max(limit/2, 2*time.Since(w.asked)))
				leave.Reset(max(time.Until(until), time.Until(since.Add(limit))))
			}
		case <-next.C:
			if left := others(); !found && len(left) > 0 {
				other := left[rand.N(len(left))]
				asked[other] = true
				ask(other, other)
				mute++
			}
			if !found {
				next.Reset(nextServer) // a lookup may end meanwhile
			}
		case <-leave.C:
			if at, waits := c.silent(); waits && at.Equal(since) {
				s.strained.Store(true)
				c.kill(&errSilent{time.Since(since)})
			}
			return
		case <-end.C:
			if !found && (mute == 0 && len(others()) == 0 || time.Since(begun) >= 2*round) {
				return // the next doubt asks them again
			}
			end.Reset(round)
		case <-ctx.Done():
			return
		}
	}
}

// limit returns how long the session waits for a sign of life of its server. After it has left one it waits for longer,
// until a commit was in time: where commits take long, a session that is never left in peace makes no progress.
func (s *session) limit() time.Duration {
	if timeout := s.Timeout(); s.strained.Load() {
		return forgotten(timeout, 1)
	}
	return patience(s.Timeout())
}

// mayRemake reports whether the session may leave a connection whose server answers on others: the network may drop what is
// sent on this one, a balancer may have another server behind each of them, or a proxy may have lost what is behind this one. The
// kernel knows of the first. Of the others a server that is slow looks the same. So the connection must have been silent for long,
// and the session does it once until a commit was in time.
func (s *session) mayRemake(c *conn) (quiet time.Duration, may bool) {
	since, waits := c.unheard()
	quiet = time.Since(since)
	long := quiet >= forgotten(s.Timeout(), len(s.dialer.turns.all())) && !s.strained.Load()
	return quiet, waits && (long || unacknowledged(c.raw))
}
