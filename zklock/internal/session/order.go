package session

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// order checks that the ids of the ensemble's transactions rise, since tokens are made of them. They
// do not if the ensemble has lost transactions: because it was set up again, empty, or was restored
// from an older snapshot.
//
// Invariants:
//   - Only writes are compared, and each only with ids that the client knew before it sent the
//     write. A read proves nothing: its server may lag behind what the client has seen.
//   - A client that has found a smaller id never trusts the ensemble again, also when the ids have
//     grown beyond those that it knows. Another client may have been given greater ones before.
type order struct {
	newest atomic.Int64          // the greatest id of a write
	back   atomic.Pointer[error] // why tokens cannot be trusted; nil: they can
}

// note records the id of a transaction that the ensemble has committed. seen is the newest id that was
// known before the transaction was sent. If the ids went back, now or earlier, note returns an error
// that matches errs.ErrTokenRegression. first is true for the first such call only.
func (o *order) note(seen, zxid int64) (first bool, err error) {
	if zxid <= seen {
		err := fmt.Errorf("%w: transaction %#x after %#x", errs.ErrTokenRegression, uint64(zxid), uint64(seen))
		first = o.back.CompareAndSwap(nil, &err)
	}
	for {
		newest := o.newest.Load()
		if zxid <= newest || o.newest.CompareAndSwap(newest, zxid) {
			return first, o.err()
		}
	}
}

// err returns why tokens cannot be trusted; nil if they can.
func (o *order) err() error {
	if err := o.back.Load(); err != nil {
		return *err
	}
	return nil
}

// Regressed returns an error that matches errs.ErrTokenRegression if a session of the pool has found
// that the ensemble's transaction ids went back; else nil.
func (p *Pool) Regressed() error { return p.order.err() }

// Newest returns the greatest transaction id of a write that the client knows.
func (s *Session) Newest() int64 { return s.pool.order.newest.Load() }

// Note records the id of a committed transaction. seen is what Newest returned before the transaction
// was sent. The error matches errs.ErrTokenRegression: no lock may be granted with this id.
func (s *Session) Note(seen, zxid int64) error {
	first, err := s.pool.order.note(seen, zxid)
	if first {
		s.pool.giveUp(seen, zxid)
	}
	return err
}

// giveUp logs that the ensemble has lost transactions, and ends all sessions. Such an ensemble may have
// forgotten a queue node of theirs that still holds, or have one again that was deleted.
func (p *Pool) giveUp(seen, zxid int64) {
	p.Settings.Log().Error("zklock: the ensemble has lost transactions, and tokens would go back: this client acquires no more locks",
		"transaction", HexID(zxid), "seen", HexID(seen),
		"advice", "restart this process when no holder from before is at work; docs/runbook.md has an entry about it")
	p.Spawn(func() {
		for _, s := range p.All() {
			s.End(driver.Expired, errs.ErrTransactionsLost)
		}
	})
}

// commit sends a transaction, and records its id if it was committed. A driver of another project may
// not report ids: they are 0 then.
func (s *Session) commit(ctx context.Context, ops []driver.Op) (results []driver.OpResult, err error) {
	seen := s.Newest()
	results, err = s.DS.Multi(ctx, ops)
	if err == nil && len(results) > 0 {
		s.unchecked.Store(false)
		if zxid := results[0].Zxid; zxid != 0 {
			_ = s.Note(seen, zxid) // this error is for those that acquire
		}
	}
	return results, err
}

// CheckOrder sends a write if none was committed on this session, and it follows a loss: see unchecked.
func (s *Session) CheckOrder(ctx context.Context) error {
	if !s.unchecked.Load() {
		return nil
	}
	return s.Repeat(ctx, "verify", func(ctx context.Context) error {
		_, err := s.Transact(ctx, []driver.Op{driver.CheckOp(s.settings.Root, driver.AnyVersion)})
		return err
	})
}

// mayFollowALoss reports whether the ensemble may have lost transactions that this client knows, since
// its earlier sessions saw it last. A session survives no such loss, or its next write finds it.
func (p *Pool) mayFollowALoss() bool {
	return p.Lost.Load() > 0 && p.order.newest.Load() != 0 && p.Regressed() == nil
}
