package session

import (
	"fmt"
	"sync/atomic"

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

	// regressed is closed after back was set. The sessions of that moment end then: such an ensemble may
	// have forgotten a queue node of theirs that still holds, or have one again that was deleted.
	regressed chan struct{}
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
