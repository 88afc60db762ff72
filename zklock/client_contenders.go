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
// For contenders of another dialect only Node, Mode, Held, Foreign, Session and Zxid are
// set. Their Held follows the rules of their own recipe, which ignores the nodes of others.
func (c *Client) Contenders(ctx context.Context, name string) ([]Contender, error) {
	var found []Contender
	err := operate(ctx, c, name, func(ctx context.Context, z place.Znode) error {
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
	add := func(same []place.Entry, contender func(place.Entry) Contender) {
		nodes := place.Nodes(same)
		for i, e := range same {
			c := contender(e)
			c.Held, _ = queue.Decide(nodes, i)
			contenders = append(contenders, ranked{e.Seq, c})
		}
	}
	add(queued.Known, contenderOf)
	for _, same := range queued.Others {
		add(same, func(e place.Entry) Contender {
			c := nodeOf(e)
			c.Foreign = true
			return c
		})
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
	err := operate(ctx, c, name, func(ctx context.Context, z place.Znode) error {
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
func operate(ctx context.Context, c *Client, name string, op func(ctx context.Context, z place.Znode) error) error {
	if err := operable(c, name); err != nil {
		return err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return onDesk(ctx, c, c.path(name), func(d *place.Desk) error { return op(ctx, place.Znode{Desk: d, Path: c.path(name)}) })
}

// operable returns why an operator's operation on a name is refused.
func operable(c *Client, name string) error {
	if c == nil || c.pool == nil {
		return errNoClient
	}
	return c.cfg.Dialect.CheckName(name)
}

// onDesk runs an operation on the session of a path, and again on the next one if that
// session ends.
func onDesk(ctx context.Context, c *Client, path string, op func(*place.Desk) error) error {
	for {
		d, err := deskFor(ctx, c, path)
		if err != nil {
			return err
		}
		if err = op(d); !errors.Is(err, errs.ErrSessionOver) {
			return err
		}
	}
}

// deskFor returns the session of a path. It waits for one for connect_timeout.
func deskFor(ctx context.Context, c *Client, path string) (*place.Desk, error) {
	ctx, stop := c.pool.Patient(ctx, time.Now())
	defer stop()
	s, err := c.pool.Session(ctx, path)
	if err != nil {
		return nil, err
	}
	return place.DeskOf(s), nil
}
