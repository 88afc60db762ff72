package session

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/hook"
	"github.com/zklock/go-zklock/zklock/internal/lease"
)

// heart is the goroutine of a session that keeps its lease proven.
type heart struct{ *Session }

// beat keeps the lease proven. While the session has places, it sends a write, which a
// quorum has to commit, every tenth of the session timeout. While there are none, it sends
// a Sync now and then: a later write needs earlier exchanges to prove a lease. Another
// committed write counts as a heartbeat if the lease's chain of exchanges includes it.
func (s heart) beat() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var attempt time.Time // instant of the last attempt at an exchange
	var looked time.Time  // instant of the last search for handles that callers have dropped
	early := s.settings.early()
	// Each turn checks the context: a hook may have taken longer than a period.
	for s.Ctx.Err() == nil {
		s.Mu.Lock()
		urgent, busy, every := s.urgent, s.Work > 0, s.Lease.SyncEvery()
		if busy {
			every = s.Lease.HeartbeatEvery()
		}
		last := s.Lease.LastSent()
		s.Mu.Unlock()
		if attempt.After(last) {
			last = attempt // a failed exchange is not repeated before the next one is due
		}
		due := last.Add(max(every-early(every), lease.MinPeriod))
		if urgent {
			due = attempt.Add(lease.MinPeriod)
		}
		wait := due.Sub(lease.Now())
		if wait <= 0 {
			attempt = lease.Now()
			s.Mu.Lock()
			s.urgent = false
			s.Mu.Unlock()
			s.exchange(busy)
			early = s.settings.early()
			continue
		}
		if looked.Add(every).Before(lease.Now()) {
			looked = lease.Now()
			s.review()
		}
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-s.Rouse:
		case <-s.Ctx.Done():
			return
		}
	}
}

// exchange makes one exchange that may prove the lease: a heartbeat if busy, else a Sync. It
// returns no error: a failure has the effect that the lease runs out, or that the session's
// state changes.
func (s heart) exchange(busy bool) {
	kind := "sync"
	if busy {
		kind = "heartbeat"
	}
	root := s.settings.Root
	_, end := hook.Start(s.settings.Operation, s.Ctx, Operation{Kind: kind, Group: 1, Server: s.DS.Server(), Session: s.DS.ID()})
	ctx, cancel := context.WithTimeout(s.Ctx, s.requestTimeout())
	defer cancel()
	gen, sent := s.BeforeExchange()
	var err error
	if busy {
		_, err = s.DS.Multi(ctx, []driver.Op{driver.CheckOp(root, driver.AnyVersion)})
	} else {
		err = s.DS.Sync(ctx, root)
	}
	if err == nil {
		s.Exchanged(gen, sent, busy)
	}
	end.Call(err)
	if err == nil && busy {
		s.report(driver.Connected, nil)
	}
}
