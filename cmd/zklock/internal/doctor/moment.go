package doctor

import (
	"context"
	"errors"
	"slices"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// looks is how often the servers and their quorum are asked at most.
const looks = 3

// errNoneServes stands for the error of a ping that no server could answer.
var errNoneServes = errors.New("none of the servers gives out sessions")

// look asks the servers, and then their quorum, until both are of one moment: an election may end in between, and then
// what the servers said is over. It returns the error of the ping.
func look(ctx context.Context, p Patient) (servers []server, err error) {
	return settle(func() []server { return lookAtAll(ctx, p) }, func() error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return p.Client.Ping(ctx)
	})
}

// settle is look with the two questions.
func settle(ask func() []server, ping func() error) (servers []server, err error) {
	for range looks {
		servers = ask()
		if !slices.ContainsFunc(servers, func(s server) bool { return !s.isDown() || errors.Is(s.err, errWaits) }) {
			return servers, errNoneServes
		}
		if err = ping(); agree(servers, err) {
			break
		}
	}
	return servers, err
}

// answered reports whether the error of a ping is an answer of a quorum.
func answered(err error) bool {
	reason := zklock.Reason(err)
	return err == nil || reason == rootMissing || reason == "session_timeout" || errors.Is(err, zklock.ErrNoAuth) && !errors.Is(err, driver.ErrAuthFailed)
}

// agree reports whether the servers and the quorum say the same: more than half of the servers give out sessions, or
// none answers for a quorum.
func agree(servers []server, err error) bool {
	up, all := voters(servers)
	switch {
	case errors.Is(err, driver.ErrAuthFailed), errors.Is(err, driver.ErrTLS), errors.Is(err, driver.ErrProtocol):
		return true // the quorum was not asked
	case answered(err):
		return all < 2 || 2*up > all
	}
	return 2*up <= all
}
