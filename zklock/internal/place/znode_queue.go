package place

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Queue has all contenders in the queue of a name.
type Queue struct {
	Known  []queue.Node   // contenders of the client's dialect, in order; nil: the name has no znode
	Data   [][]byte       // of each of Known
	Others [][]queue.Node // contenders of other dialects, by family
}

// Contenders returns all contenders in the queue of a name, as of a moment during the
// call. Contenders that leave before their data is read are left out.
func (z Znode) Contenders(ctx context.Context) (found Queue, err error) {
	desk, dir := z.Desk, z.Path
	var names []string
	err = desk.Repeat(ctx, "list", func(ctx context.Context) (err error) {
		// Without the Sync the server may not know yet what the caller has just seen on
		// another server.
		if err = desk.DS.Sync(ctx, dir); err != nil {
			return err
		}
		names, _, err = desk.DS.Children(ctx, dir)
		return err
	})
	if errors.Is(err, driver.ErrNoNode) {
		return Queue{}, nil
	}
	if err != nil {
		return Queue{}, desk.cfg.explain(err, dir)
	}
	q := make([]queue.Node, 0, len(names))  // not nil: the znode exists
	var others [queue.Families][]queue.Node // by family
	for _, name := range names {
		if c, other, ok := desk.cfg.Dialect.Parse(name); ok {
			q = append(q, c)
		} else if other != nil {
			c, _, _ = other.Parse(name)
			others[other.Family] = append(others[other.Family], c)
		}
	}
	queue.Sort(q)
	read, err := z.readContenders(ctx, q)
	if err != nil {
		return Queue{}, desk.cfg.explain(err, dir)
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
	return Queue{present, data, others[:]}, nil
}

// maxReads is how many contenders are read at the same time: enough that the round
// trips to the server add little, and so few that three quarters of session.MaxLone are
// left for calls that acquire on the session meanwhile.
const maxReads = session.MaxLone / 4

// contenderData is what a read of a contender found.
type contenderData struct {
	there bool // its node still existed
	data  []byte
}

// readContenders reads the data of each contender of q, maxReads of them at the same
// time. It stops at the first error. It returns when no read is under way any more.
func (z Znode) readContenders(ctx context.Context, q []queue.Node) ([]contenderData, error) {
	desk, dir := z.Desk, z.Path
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
				err := desk.Repeat(ctx, "list", func(ctx context.Context) (err error) {
					n, err = desk.DS.Get(ctx, dir+"/"+q[i].Name)
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

// Delete deletes a contender's node, whichever client has created it.
func (z Znode) Delete(ctx context.Context, node string) error {
	desk := z.Desk
	return desk.cfg.explain(desk.Repeat(ctx, "release", func(ctx context.Context) error {
		return desk.DS.Delete(ctx, z.Path+"/"+node, driver.AnyVersion)
	}), z.Path)
}
