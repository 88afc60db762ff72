package simulation

import (
	"fmt"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// In one of eight runs of the wire the only faults are servers that fall silent: one at a time, so a majority answers. The
// clients have what users have, and ticks that the servers' documentation allows with it. There each lock and each session
// that is lost is a violation. The bounds are those of docs/operations.md and docs/guarantees.md:
//
//   - a follower costs no lock, whatever the session timeout is from 4 s on: a request waits for an eighth of it at most, and
//     the lease outlasts that, the exchange before, and the next handshake with its write;
//   - a leader costs none at the default, where the lease outlasts syncLimit ticks and an election;
//   - the next fault comes a session timeout after the end of the one before: by then each lease is as long again as the first
//     point needs, and each session that has left a server has had a commit in time, see limit in zkdriver/silence.go.

// hushed reports whether a seed makes such a run.
func hushed(seed uint64) bool { return seed%8 == 4 }

// asUsers gives the next run the session timeout of one of many users, the shorter ones with shorter ticks.
func asUsers(seed uint64) (restore func()) {
	switch seed / 8 % 4 {
	case 0:
		return lasting(4*time.Second, time.Second, time.Second, 10*time.Second)
	case 1:
		return lasting(10*time.Second, 2*time.Second, 0, 10*time.Second)
	case 2:
		return lasting(20*time.Second, 2*time.Second, 0, 10*time.Second)
	}
	return asShipped()
}

// beHushed leaves a run the silence of servers alone.
func (p *profile) beHushed() {
	p.hush, p.operator, p.breaker, p.quiet, p.slow, p.loses = true, false, false, false, false, false
	p.servers, p.syncLimit, p.limit, p.rate, p.breaks, p.length = max(p.servers, 3), 5, 0, 0, 14, 8*simTimeout
}

// rested reports whether no server is silent, and none has been for a session timeout.
func (w *world) rested() bool {
	for _, at := range w.recent {
		if time.Since(at) < simTimeout {
			return false
		}
	}
	return len(w.lifts) == 0
}

// spared reports whether a server must not fall silent in such a run: the leader, where a lease is shorter than an election.
func (w *world) spared(server int) bool {
	return w.p.hush && server == w.ensemble.Leader() && simTimeout < 30*time.Second
}

// aServer returns one that a fault may strike.
func (w *world) aServer() int {
	n := w.rng.IntN(w.p.servers)
	if w.spared(n) {
		n = (n + 1) % w.p.servers
	}
	return n
}

// lostInSilence judges a loss in such a run.
func (w *world) lostInSilence(what string, cause error) string {
	return fmt.Sprintf("%s was lost, and one server of %d at most was silent: %v", what, w.p.servers, cause)
}

// judgeSession judges what happens to a session.
func (w *world) judgeSession(e zklock.SessionEvent) {
	if w.p.hush && e.State == driver.Expired {
		w.model.violate("silence", "%s", w.lostInSilence(fmt.Sprintf("session %#x", e.ID), e.Err))
	}
}

// judgeLossLocked judges the loss of a lock. The caller holds the model's mutex.
func (m *model) judgeLossLocked(e zklock.LostEvent) {
	if m.w.p.hush {
		m.violateLocked("silence", "%s", m.w.lostInSilence("lock "+e.Lock.Name(), e.Err))
	}
}
