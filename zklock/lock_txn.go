package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Txn applies ops as one ZooKeeper transaction, but only while the lock is held: the
// transaction begins with a check that the lock's queue node exists. So a holder that was
// paused and has lost the lock changes nothing. Txn protects data in ZooKeeper itself, and
// needs no tokens. Paths are absolute, and do not begin at the client's root. Readers may
// use Txn too. [driver.CreateOp], [driver.SetOp], [driver.DeleteOp] and [driver.CheckOp] make the
// operations:
//
//	config, err := lock.Get(ctx, "/shop/config")
//	if err != nil {
//		return err
//	}
//	_, err = lock.Txn(ctx,
//		driver.SetOp("/shop/config", data, config.Stat.Version),
//		driver.CreateOp("/shop/before", config.Data, driver.Persistent, client.ACL()))
//
// Txn returns one result for each of ops. If an operation fails, nothing is applied, and the error
// matches the operation's error from package driver. If the lock has ended, the error matches
// [ErrLost] or [ErrReleased]. [ErrUnknownOutcome] means that the connection was lost before the
// reply: the transaction was applied, or was not, or will be while the lock's queue node still
// exists. Txn never repeats a transaction.
//
// An ephemeral znode that a Txn creates exists for at least as long as the lock, unless it is deleted, and goes with
// the client's session, which other locks share. Delete it with a Txn: then it makes room for others. A Txn that the
// session has no room for fails with [driver.ErrTooLarge].
//
// Release and Downgrade wait for Txns under way.
func (l *Lock) Txn(ctx context.Context, ops ...driver.Op) (results []driver.OpResult, err error) {
	defer annotate(&err, "txn", l.handle.hold.Name())
	results, err = l.handle.hold.Txn(ctx, l.handle, "txn", ops, false)
	return results, l.ended(err)
}

// Get reads a znode, for example before a Txn that changes it. The path is absolute. What it
// returns has everything that Txns under earlier holds of the lock have written, and may lag
// behind other writes, as [driver.Session] describes for Get. It was read while the lock was
// held: otherwise the error matches [ErrLost] or [ErrReleased].
//
// Get repeats the read until there is an answer, ctx ends or connect_timeout has passed. If the
// znode does not exist, the error matches [driver.ErrNoNode].
func (l *Lock) Get(ctx context.Context, path string) (n driver.Node, err error) {
	defer annotate(&err, "get", l.handle.hold.Name())
	if err := l.Err(); err != nil {
		return n, err
	}
	n, err = l.handle.hold.Read(ctx, path)
	switch {
	case errors.Is(err, errs.ErrSessionOver), errors.Is(err, errs.ErrNodeGone), err == nil && !l.Valid():
		return driver.Node{}, l.endedError()
	case err != nil && ctx.Err() != nil:
		return n, errs.WhyEnded(ctx, err)
	}
	return n, err
}

// Verify asks a quorum of the ensemble whether the lock's queue node still exists. If it
// does not, the lock is lost, and the error matches [ErrLost]. After a Release the error
// matches [ErrReleased]. Any other error means that there was no answer, and the lock
// stays as it was.
func (l *Lock) Verify(ctx context.Context) (err error) {
	defer annotate(&err, "verify", l.handle.hold.Name())
	_, err = l.handle.hold.Txn(ctx, l.handle, "verify", nil, true)
	if err = l.ended(err); err == nil && l.Err() != nil {
		return l.endedError()
	}
	if err == nil && !l.handle.hold.Alive() {
		return errs.LeaseUnproven(l.handle.client.cfg.Place.ConnectTimeout)
	}
	return err
}

// ended returns an error of the hold, or endedError if that says that the hold or the handle has ended. A
// request that was not sent may have met the end of the lock's context.
func (l *Lock) ended(err error) error {
	if errors.Is(err, errs.ErrReleased) || errors.Is(err, driver.ErrNotSent) && l.Err() != nil {
		return l.endedError()
	}
	return err
}

// endedError returns Err of a Lock that has ended or is about to end. It is never nil.
func (l *Lock) endedError() error {
	if err := l.Err(); err != nil {
		return err
	}
	cause := l.handle.hold.SessionCause() // the session may be about to end this handle
	if cause == nil {
		cause = errs.ErrSessionEnded
	}
	return &LostError{Name: l.handle.hold.Name(), Cause: cause, At: time.Now()}
}
