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

// beat keeps the lease proven: while there is a queue node, a write that a
// quorum has to commit, every tenth of the timeout; else a Sync now and then,
// so that the first write finds a history to prove something by. Any other
// committed write that became a link of the chain counts as a heartbeat.
func (s heart) beat() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var attempt time.Time // instant of the last one
	var looked time.Time  // for handles that may have been dropped
	early := s.settings.early()
	// The context is looked at each time: a hook may take longer than a period.
	for s.Ctx.Err() == nil {
		s.Mu.Lock()
		urgent, busy, every := s.urgent, s.Work > 0, s.Lease.SyncEvery()
		if busy {
			every = s.Lease.HeartbeatEvery()
		}
		last := s.Lease.LastSent()
		s.Mu.Unlock()
		if attempt.After(last) {
			last = attempt // a failed one is not repeated before its time
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

// exchange makes one exchange for the lease's sake. Whatever goes wrong shows in
// the lease running out, or in the session's state.
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
		s.tell(driver.Connected, nil)
	}
}
