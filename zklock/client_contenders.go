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

// Contenders returns who holds a name and who waits for it, in the order of the
// queue, as of a moment during the call; none for a name that is not in use. It
// costs a read for each, of which it makes several at a time; those that leave
// before they are read are left out. connect_timeout bounds the wait for a session,
// and ctx the whole. Those that the client's dialect does not know have
// the names of their nodes alone, and Held by the rules of their own recipe, which
// takes no notice of any others.
func (c *Client) Contenders(ctx context.Context, name string) ([]Contender, error) {
	var found []Contender
	err := c.operate(ctx, name, func(ctx context.Context, z place.Znode) error {
		q, err := z.Everybody(ctx)
		found = rank(q)
		return err
	})
	if err != nil {
		return nil, &Error{Op: "contenders", Name: queue.Truncate(name, queue.MaxName), Err: err}
	}
	return found, nil
}

// rank puts everybody in one order: all have their numbers from one counter, that
// of the lock's znode. Whose turn it is each recipe decides among its own.
func rank(everybody place.Queue) []Contender {
	type ranked struct {
		seq int64
		Contender
	}
	var all []ranked
	for i, q := range everybody.Known {
		c := contenderOf(q, everybody.Data[i])
		c.Held, _ = queue.Decide(everybody.Known, i)
		all = append(all, ranked{q.Seq, c})
	}
	for _, same := range everybody.Others {
		queue.Sort(same)
		for i, q := range same {
			held, _ := queue.Decide(same, i)
			all = append(all, ranked{q.Seq, Contender{Node: q.Name, Mode: Mode(q.Kind.Mode), Held: held, Foreign: true}})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.seq, b.seq) })
	if everybody.Known == nil {
		return nil
	}
	found := make([]Contender, len(all))
	for i := range all {
		found[i] = all[i].Contender
	}
	return found
}

// Break removes a contender from the queue of a name, by its Node as Contenders
// tells it: an operator's last resort. A holder whose process works on loses the
// lock and is told so, but only after somebody else may have got it: this ends
// exclusion. A waiter queues again at the tail. It is an error, which matches
// driver.ErrNoNode, if there is no such contender.
func (c *Client) Break(ctx context.Context, name, node string) error {
	err := c.operate(ctx, name, func(ctx context.Context, z place.Znode) error {
		if _, other, ok := c.cfg.Dialect.Parse(node); strings.Contains(node, "/") || !ok && other == nil {
			return fmt.Errorf("%w: %q is not the name of a contender's node, such as Contenders returns", errs.ErrConflict, node)
		}
		return z.Delete(ctx, node)
	})
	if err != nil {
		return &Error{Op: "break", Name: queue.Truncate(name, queue.MaxName), Err: err}
	}
	return nil
}

// operate runs an operator's operation on a name, on whatever session there is.
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
