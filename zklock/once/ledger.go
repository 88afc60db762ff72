package once

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// ledger is the znode that has the last slot of a name. It is read and written under the name's
// lock. Invariants:
//
//   - The slot in a ledger never falls. Only an operator can lower it, by changing the znode.
//   - Each write is a transaction that begins with a check of the lock's queue node, and has the
//     version that was read under the same lock. So a write of a holder that was stopped, or one
//     that is applied late, changes nothing once another holder may have the lock.
//   - What is read under the lock has the writes of all earlier holders: see [zklock.Lock.Get].
//   - A znode that is not a ledger is not written, and not removed.
type ledger struct {
	lock *zklock.Lock
	path string
	acl  []driver.ACL
}

// page is the content of a ledger.
type page struct {
	queue.Page
	version int32 // of the znode's data
	missing bool  // there is no znode
}

// pathOf returns the path of the ledger of a name.
func pathOf(c *zklock.Client, name string) string {
	const probe = "x"
	return strings.TrimSuffix(c.Mutex(probe).Path(), probe) + queue.Ledger(name)
}

// read reads the ledger.
func (l ledger) read(ctx context.Context) (page, error) {
	n, err := l.lock.Get(ctx, l.path)
	switch {
	case errors.Is(err, driver.ErrNoNode):
		return page{missing: true}, nil
	case err != nil:
		return page{}, err
	}
	content, ok := queue.DecodePage(n.Data)
	if !ok {
		return page{}, fmt.Errorf("%w: %s is not a ledger, so another program has written it", zklock.ErrConflict, l.path)
	}
	return page{Page: content, version: n.Stat.Version}, nil
}

// open reads the ledger, and creates it with the slot first if it is missing. So a client that may not create it
// learns of that before its job runs.
func (l ledger) open(ctx context.Context, first string) (page, error) {
	now, err := l.read(ctx)
	if err != nil || !now.missing {
		return now, err
	}
	err = l.change(ctx, &now, func() bool { return !now.missing }, func() driver.Op { return l.create(first) })
	if err == nil && now.missing {
		now = page{Page: queue.Page{Slot: first}} // as it was created
	}
	return now, err
}

// record notes that a slot has run. before is what the ledger had when it was opened.
func (l ledger) record(ctx context.Context, before page, slot string) error {
	// The job has run, so the end of its context must not stop the write.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.lock.SessionTimeout())
	defer cancel()
	now := before
	return l.change(ctx, &now, func() bool { return now.Slot >= slot }, func() driver.Op {
		if now.missing { // an operator has removed it
			return l.create(slot)
		}
		return driver.SetOp(l.path, l.encode(slot), now.version)
	})
}

// remove removes the ledger.
func (l ledger) remove(ctx context.Context) error {
	now, err := l.read(ctx)
	if err != nil || now.missing {
		return err
	}
	return l.change(ctx, &now, func() bool { return now.missing }, func() driver.Op { return driver.DeleteOp(l.path, now.version) })
}

// create returns the operation that creates the ledger with a slot.
func (l ledger) create(slot string) driver.Op {
	return driver.CreateOp(l.path, l.encode(slot), driver.Persistent, l.acl)
}

// encode returns the data of a ledger.
func (l ledger) encode(slot string) []byte {
	return queue.Page{Slot: slot, Token: l.lock.Token().String()}.Encode()
}

// change changes the ledger by the operation op, which is for the page now. If the outcome of that
// is not known, or another program has changed the ledger, change reads the ledger again, and
// repeats the operation until it succeeds or done returns true. No other process writes the ledger
// while this one holds the lock, so done is true if an operation whose reply was lost has been
// applied. change ends with the lock, or with ctx.
func (l ledger) change(ctx context.Context, now *page, done func() bool, op func() driver.Op) error {
	var open error // that the outcome of an earlier operation is not known
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		_, err := l.lock.Txn(ctx, op())
		if err != nil && isOpen(err) {
			open = err
		}
		if err != nil && mayRepeat(err) && ctx.Err() == nil {
			sleep(ctx, pause/2+rand.N(pause/2), l.lock.Done())
			var seen page
			if seen, err = l.read(ctx); err == nil {
				if *now = seen; done() {
					return nil
				}
				continue
			}
		}
		if err != nil && open != nil && !isOpen(err) {
			return fmt.Errorf("%w; %v", open, err)
		}
		return err
	}
}

// isOpen reports whether the outcome of an operation is not known.
func isOpen(err error) bool { return errors.Is(err, zklock.ErrUnknownOutcome) }

// mayRepeat reports whether a transaction on the ledger may succeed if it is made again, with
// what the ledger has then.
func mayRepeat(err error) bool {
	for _, e := range []error{zklock.ErrUnknownOutcome, zklock.ErrUnavailable, driver.ErrThrottled, driver.ErrBadVersion, driver.ErrNodeExists, driver.ErrNoNode} {
		if errors.Is(err, e) {
			return !errors.Is(err, zklock.ErrLost) && !errors.Is(err, zklock.ErrReleased)
		}
	}
	return false
}

// sleep waits for d, or until ctx ends or stop is closed.
func sleep(ctx context.Context, d time.Duration, stop <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	case <-ctx.Done():
	}
}
