package zklock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// SlotInfo says which slot of a name has run last: see package once.
type SlotInfo struct {
	Name     string    // of the job, and of its lock
	Path     string    // of the znode that has the record
	Slot     string    // "" if none has run
	Token    Token     // of the lock under which the record was written
	Recorded time.Time // when it was written, by the wall clock of the ensemble's leader
}

// Slots returns the slots that package once, or the command's "zklock run --once", has recorded last,
// one for each name that starts with prefix, in byte order. The lock of such a name need not be in use.
//
// An error with a Name concerns that name only: keep ranging. An error without a Name ends the sequence.
// If the root does not exist, the sequence is empty. Slots lists the root and reads one znode a name,
// before the first step of the loop; at most 16 requests are under way at a time.
func (c *Client) Slots(ctx context.Context, prefix string) iter.Seq2[SlotInfo, error] {
	return func(yield func(SlotInfo, error) bool) {
		if c == nil || c.pool == nil {
			yield(SlotInfo{}, &Error{Op: "slots", Err: errNoClient})
			return
		}
		ctx, cancel := c.bound(ctx)
		defer cancel()
		var found []place.Ledger
		err := onDesk(ctx, c, c.cfg.Place.Root, func(d *place.Desk) (err error) {
			root := place.Znode{Desk: d, Path: c.cfg.Place.Root}
			if err := root.Sync(ctx); err != nil {
				return err
			}
			found, err = root.Ledgers(ctx, prefix)
			return err
		})
		if err != nil && !errors.Is(err, errs.ErrRootMissing) {
			yield(SlotInfo{}, &Error{Op: "slots", Err: errs.WhyEnded(ctx, err)})
			return
		}
		for _, l := range found {
			info, err := slotOf(l)
			if err != nil {
				err = &Error{Op: "slots", Name: queue.Truncate(l.Name, queue.MaxName), Err: err}
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// slotOf returns what a ledger says.
func slotOf(l place.Ledger) (SlotInfo, error) {
	info := SlotInfo{Name: l.Name, Path: l.Path}
	if l.Err != nil {
		return info, l.Err
	}
	page, ok := queue.DecodePage(l.Node.Data)
	if !ok {
		return info, fmt.Errorf("%w: %s is not a ledger, so another program has written it", errs.ErrConflict, l.Path)
	}
	info.Slot, info.Recorded = page.Slot, time.UnixMilli(l.Node.Stat.Mtime)
	info.Token, _ = ParseToken(page.Token)
	return info, nil
}
