package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Contenders returns the holders and the waiters of a name, in the order of the
// queue, as of a moment during the call. It returns none for a name that is not in
// use. It lists the queue and reads each contender's node, several at a time;
// contenders that leave before they are read are left out. connect_timeout bounds the
// wait for a session, and ctx bounds the whole call.
//
// For contenders of another dialect only Node, Mode, Held and Foreign are set. Their
// Held follows the rules of their own recipe, which ignores the nodes of others.
func (c *Client) Contenders(ctx context.Context, name string) ([]Contender, error) {
	var found []Contender
	err := c.operate(ctx, name, func(ctx context.Context, z place.Znode) error {
		q, err := z.Contenders(ctx)
		found = rank(q)
		return err
	})
	if err != nil {
		return nil, &Error{Op: "contenders", Name: queue.Truncate(name, queue.MaxName), Err: err}
	}
	return found, nil
}

// rank puts the contenders of all dialects into one order. Their sequence numbers
// come from one counter, that of the lock's znode. Each recipe decides among its own
// nodes which of them hold.
func rank(queued place.Queue) []Contender {
	type ranked struct {
		seq int64
		Contender
	}
	var contenders []ranked
	for i, q := range queued.Known {
		c := contenderOf(q, queued.Data[i])
		c.Held, _ = queue.Decide(queued.Known, i)
		contenders = append(contenders, ranked{q.Seq, c})
	}
	for _, same := range queued.Others {
		queue.Sort(same)
		for i, q := range same {
			held, _ := queue.Decide(same, i)
			contenders = append(contenders, ranked{q.Seq, Contender{Node: q.Name, Mode: Mode(q.Kind.Mode), Held: held, Foreign: true}})
		}
	}
	slices.SortStableFunc(contenders, func(a, b ranked) int { return cmp.Compare(a.seq, b.seq) })
	if queued.Known == nil {
		return nil
	}
	found := make([]Contender, len(contenders))
	for i := range contenders {
		found[i] = contenders[i].Contender
	}
	return found
}

// Break deletes a contender's node from the queue of a name, as a last resort of an
// operator. node is the Node of a [Contender]. Break does not keep exclusion: a holder
// that still runs loses the lock, but its Done closes only after another client may
// have been granted the lock. A waiter queues again at the end. If the queue
// does not have the node, the error matches [driver.ErrNoNode].
func (c *Client) Break(ctx context.Context, name, node string) error {
	err := c.operate(ctx, name, func(ctx context.Context, z place.Znode) error {
		if _, other, ok := c.cfg.Dialect.Parse(node); strings.Contains(node, "/") || !ok && other == nil {
			return fmt.Errorf("%w: %q is not the name of a queue node: pass the Node of a Contender that Contenders returned", errs.ErrConflict, node)
		}
		return z.Delete(ctx, node)
	})
	if err != nil {
		return &Error{Op: "break", Name: queue.Truncate(name, queue.MaxName), Err: err}
	}
	return nil
}

// operate runs an operator's operation on a name, and again on another session if the
// session ends.
func (c *Client) operate(ctx context.Context, name string, op func(ctx context.Context, z place.Znode) error) error {
	if c == nil || c.pool == nil {
		return errNoClient
	}
	if err := c.cfg.Dialect.CheckName(name); err != nil {
		return err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	dir := c.path(name)
	for {
		patient, stop := c.pool.Patient(ctx, time.Now())
		s, err := c.pool.Session(patient, dir)
		stop()
		if err != nil {
			return err
		}
		if err = op(ctx, place.Znode{Desk: place.DeskOf(s), Path: dir}); !errors.Is(err, errs.ErrSessionOver) {
			return err
		}
	}
}
