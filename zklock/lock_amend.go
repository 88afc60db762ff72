package zklock

import "context"

// Downgrade turns a writer's lock into a reader's. No writer can hold the lock in between,
// and the token stays the same. The lock cannot become a writer's again: two readers that
// wait to become writers would wait for each other.
//
// Downgrade first waits for Txns under way, because a Txn must not be applied while other
// readers hold the lock. It waits until ctx ends, at most for a session timeout. If a Txn
// is still under way then, or if the outcome of any Txn under the lock is unknown, the lock
// stays a writer's, and the error matches [ErrUnknownOutcome]. In that case check what the
// Txn wrote, and release the lock.
//
// Otherwise the lock becomes a reader's in this process, and stays one even if Downgrade
// returns an error. The client writes the change into the queue node, where other clients
// see it, and Downgrade waits for the ensemble's confirmation. If ctx ends first, the error
// matches its cause, and the write continues in the background.
//
// Downgrade does nothing for a reader's lock. It fails with [ErrConflict] for a
// semaphore's permit, for All of several names, and for a lock that several Locks hold
// because of [Reenter].
func (l *Lock) Downgrade(ctx context.Context) (err error) {
	defer annotate(&err, "downgrade", l.handle.hold.Name())
	if err := l.Err(); err != nil {
		return err
	}
	return l.ended(l.handle.hold.Downgrade(ctx))
}

// SetLabel replaces the text that others read about the lock's holder, such as its address or
// "row 1200 of 9000". It is cut at 256 bytes. [Client.Contenders] returns it, and a
// [Client.Watch] reports it while the lock is held exclusively.
//
// The label belongs to the lock's place in ZooKeeper's queue. Readers of this process that
// share the place share the label. After a hand-over inside the process, which costs no
// request, others read the last label for a while: see [Contender].
//
// SetLabel costs a read and a write for each of the lock's names, and the next waiter in the queue
// reads the node again. It returns when the ensemble has confirmed the write. If ctx ends first,
// or connect_timeout passes, the error says so: others may read either label then, and no late
// write undoes a later SetLabel. If the lock has ended, the error matches [ErrLost] or
// [ErrReleased]. No other error affects the lock.
func (l *Lock) SetLabel(ctx context.Context, label string) (err error) {
	if l == nil || l.handle == nil {
		return &Error{Op: "label", Err: ErrReleased}
	}
	defer annotate(&err, "label", l.handle.hold.Name())
	if err := l.Err(); err != nil {
		return err
	}
	return l.ended(l.handle.hold.SetLabel(ctx, l.handle, label))
}
