package session

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// heart is the goroutine of a session that keeps its lease proven.
type heart struct {
	*life
	requests *requests
}

// beat keeps the lease proven. While a place needs it, it sends a Sync every
// lease.Lease.ExchangeEvery, and after some of them a heartbeat: a write, which a quorum commits. See
// lease.Lease.CommitDue. Else it sends a Sync now and then, so that the first write finds
// earlier exchanges to prove a lease with. Any other request that became a link of the
// lease's chain replaces a Sync, and any other write that renewed the lease a heartbeat.
func (s heart) beat() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var last lastTurn
	var looked time.Time // instant of the last search for handles that callers have dropped
	early := s.settings.early()
	// Each turn checks the context: a hook may have taken longer than a period.
	for s.ctx.Err() == nil {
		now := lease.Now()
		next := s.plan(now, last, early)
		wait := next.at.Sub(now)
		if wait <= 0 {
			last.at = lease.Now()
			if next.write {
				last.wrote = last.at
			}
			last.failed = !s.exchange(next)
			early = s.settings.early()
			continue
		}
		if looked.Add(next.every).Before(lease.Now()) {
			looked = lease.Now()
			for _, h := range s.holdsNow() {
				h.Review()
			}
		}
		timer.Reset(wait)
		s.waits(next.at)
		select {
		case <-timer.C:
		case <-s.rouse:
		case <-s.ctx.Done():
			return
		}
		s.waits(time.Time{})
	}
}

// turn is what the heart does next.
type turn struct {
	at     time.Time     // an instant
	every  time.Duration // the interval of exchanges
	insist bool          // if the Sync fails, it sends a heartbeat in its place
	sync   bool          // it sends a Sync
	write  bool          // it sends a heartbeat, after the Sync if there is one
}

// lastTurn is the heart's last turn.
type lastTurn struct {
	at     time.Time // an instant
	wrote  time.Time // the instant of the last turn with a heartbeat
	failed bool      // a request was not answered
}

// plan decides what the heart does next. A turn that has failed is not repeated before an
// interval has passed.
func (s heart) plan(now time.Time, last lastTurn, early func(time.Duration) time.Duration) turn {
	s.mu.Lock()
	defer s.mu.Unlock()
	busy, every := s.needing > 0, s.lease.SyncEvery()
	switch {
	case busy:
		every = s.lease.ExchangeEvery()
	case s.work > 0:
		every = s.lease.RestEvery()
	}
	// A server may refuse Syncs. On a session that proves no lease that must not look like silence.
	// After a gap in the chain, the first heartbeats would prove too little for a grant.
	insist := busy || last.failed || s.quietLocked(now) >= s.timeout/2
	if s.urgent {
		// Many sessions may come back at the same moment: none writes in place of a Sync.
		next := turn{at: last.at.Add(lease.MinPeriod), every: every, sync: true}
		if busy {
			// A caller waits for the lease: the heartbeat does without a Sync of its own, and
			// does not keep its distance from the last Sync.
			next = turn{at: last.wrote.Add(lease.MinPeriod), every: every, write: true}
		}
		s.urgent = next.at.After(now) // what becomes urgent later needs another turn
		return next
	}
	period := max(every-early(every), lease.MinPeriod)
	again := last.at.Add(lease.MinPeriod)
	if last.failed {
		again = last.at.Add(period)
	}
	if first := s.born.Add(lease.MinPeriod); s.requests.unchecked.Load() && !busy {
		// A write of a caller is usually earlier. Without one, Healthy would not know what the
		// ensemble has lost.
		if first.Before(again) {
			first = again
		}
		return turn{at: first, every: every, write: true}
	}
	at := s.lease.LastSent().Add(period)
	write := busy && !s.counting // nothing is proven yet
	if busy && s.counting {
		// A Sync soon after an exchange would not become a link of the chain.
		due := s.lease.CommitDue().Add(-early(2 * every))
		if write = due.Before(at.Add(every / 2)); write && due.Before(at) {
			at = due
		}
	}
	if at.Before(again) {
		at = again
	}
	return turn{at, every, insist, true, write}
}

// exchange sends the requests of a turn, one after the other. It reports whether all were
// answered. If they are not, the lease runs out, or the session's state changes. For
// next.insist, a heartbeat takes the place of a Sync that fails.
func (s heart) exchange(next turn) bool {
	synced := !next.sync || s.request("sync", false)
	if !next.write && (synced || !next.insist) {
		return synced
	}
	if !s.request("heartbeat", true) {
		return false
	}
	s.report(driver.Connected)
	return true
}

// request sends one request, and reports whether it was answered.
func (s heart) request(kind string, write bool) bool {
	root := s.settings.Root
	_, end := hook.Start(s.settings.Operation, s.ctx, Operation{Kind: kind, Group: 1, Server: s.ds.Server(), Session: s.ds.ID()})
	ctx, cancel := context.WithTimeout(s.ctx, s.requests.requestTimeout())
	defer cancel()
	err := s.requests.prove(write, func() (err error) {
		s.waits(lease.Now().Add(s.requests.requestTimeout()))
		defer s.waits(time.Time{})
		if write {
			_, err = s.requests.commit(ctx, []driver.Op{driver.CheckOp(root, driver.AnyVersion)})
		} else {
			err = s.ds.Sync(ctx, root)
		}
		return err
	})
	end.Call(err)
	if write && err != nil && !Transient(err) {
		s.noteRefusal(err)
	}
	return err == nil
}

// noteRefusal notes that the ensemble has refused a heartbeat: it proves no lease, and the session may end with it.
func (s heart) noteRefusal(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
}

// waits records that the heart waits until the instant due at most; zero: it does not wait.
// If it still waits much later, the process did not run for a while. Then a lease that has run
// out says nothing about the ensemble.
func (s heart) waits(due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastPauseLocked()
	s.due, s.frozen = due, lease.Suspended()
}
