package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
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
	err := c.operate(ctx, name, func(ctx context.Context, s *desk, dir string) (err error) {
		found, err = znode{s, dir}.contenders(ctx)
		return err
	})
	if err != nil {
		return nil, &Error{Op: "contenders", Name: queue.Truncate(name, queue.MaxName), Err: err}
	}
	return found, nil
}

func (z znode) contenders(ctx context.Context) ([]Contender, error) {
	s, dir := z.s, z.path
	var names []string
	err := s.Repeat(ctx, "list", func(ctx context.Context) (err error) {
		// Without the Sync the server may not have heard yet of what the caller
		// has just seen elsewhere.
		if err = s.DS.Sync(ctx, dir); err != nil {
			return err
		}
		names, _, err = s.DS.Children(ctx, dir)
		return err
	})
	if errors.Is(err, driver.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, s.cfg.explain(err, dir)
	}
	var q []queue.Node
	var others [queue.Families][]queue.Node // by family
	for _, name := range names {
		if c, other, ok := s.cfg.dialect.Parse(name); ok {
			q = append(q, c)
		} else if other != nil {
			c, _, _ = other.Parse(name)
			others[other.Family] = append(others[other.Family], c)
		}
	}
	queue.Sort(q)
	read, err := z.readContenders(ctx, q)
	if err != nil {
		return nil, s.cfg.explain(err, dir)
	}
	present, data := q[:0], make([][]byte, 0, len(q))
	for i, c := range q {
		if !read[i].there {
			continue
		}
		d, _ := queue.Decode(read[i].data)
		c.Kind = queue.Effective(c.Kind, d)
		present, data = append(present, c), append(data, read[i].data)
	}
	return rank(present, data, others[:]), nil
}

// maxReads is how many contenders are read at once: enough to make little of the
// way to the server, and so few that three quarters of maxLone are left to other calls
// that acquire on the session meanwhile.
const maxReads = session.MaxLone / 4

// contenderData is what a read of a contender found.
type contenderData struct {
	there bool // it had not left
	data  []byte
}

// readContenders reads the data of each contender of q, as many as maxReads at once.
// The first error ends it; it returns when no read is under way any more.
func (z znode) readContenders(ctx context.Context, q []queue.Node) ([]contenderData, error) {
	s, dir := z.s, z.path
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	read := make([]contenderData, len(q))
	var next atomic.Int64
	var readers sync.WaitGroup
	var first sync.Once
	var failed error
	for range min(maxReads, len(q)) {
		readers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(q)); i = next.Add(1) - 1 {
				var n driver.Node
				err := s.Repeat(ctx, "list", func(ctx context.Context) (err error) {
					n, err = s.DS.Get(ctx, dir+"/"+q[i].Name)
					return err
				})
				switch {
				case err == nil:
					read[i] = contenderData{true, n.Data}
				case !errors.Is(err, driver.ErrNoNode):
					first.Do(func() { failed = err; cancel(err) })
					return
				}
			}
		})
	}
	readers.Wait()
	return read, failed
}

// rank puts everybody in one order: all have their numbers from one counter, that
// of the lock's znode. Whose turn it is each recipe decides among its own.
func rank(known []queue.Node, data [][]byte, others [][]queue.Node) []Contender {
	type ranked struct {
		seq int64
		Contender
	}
	var all []ranked
	for i, q := range known {
		c := describe(q, data[i])
		c.Held, _ = queue.Decide(known, i)
		all = append(all, ranked{q.Seq, c})
	}
	for _, same := range others {
		queue.Sort(same)
		for i, q := range same {
			held, _ := queue.Decide(same, i)
			all = append(all, ranked{q.Seq, Contender{Node: q.Name, Mode: Mode(q.Kind.Mode), Held: held, Foreign: true}})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.seq, b.seq) })
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
	err := c.operate(ctx, name, func(ctx context.Context, s *desk, dir string) error {
		if _, other, ok := c.cfg.dialect.Parse(node); strings.Contains(node, "/") || !ok && other == nil {
			return fmt.Errorf("%w: %q is not the name of a contender's node, such as Contenders returns", errs.ErrConflict, node)
		}
		return s.cfg.explain(s.Repeat(ctx, "release", func(ctx context.Context) error {
			return s.DS.Delete(ctx, dir+"/"+node, driver.AnyVersion)
		}), dir)
	})
	if err != nil {
		return &Error{Op: "break", Name: queue.Truncate(name, queue.MaxName), Err: err}
	}
	return nil
}

// operate runs an operator's operation on a name, on whatever session there is.
func (c *Client) operate(ctx context.Context, name string, op func(ctx context.Context, s *desk, dir string) error) error {
	if c == nil || c.pool == nil {
		return errNoClient
	}
	if err := c.cfg.dialect.CheckName(name); err != nil {
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
		if err = op(ctx, deskOf(s), dir); !errors.Is(err, errs.ErrSessionOver) {
			return err
		}
	}
}
