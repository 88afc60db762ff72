package place

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// submit sends the creates of the place. Each is followed by a set of its parent, if the
// parent has our mark: the set's reply has the count of the queue's nodes, with our own node,
// since the create is in front of it. A parent that is unmade is created right before the node.
// The nodes of the place that this one replaces are deleted first, so that they are not counted.
func (c *creation) submit() *session.Write {
	desk, r, p := c.desk, c.claim, c.p
	cfg := desk.cfg
	w := &session.Write{Kind: "enqueue", Creates: p, Ctx: r.Ctx, Ops: make([]driver.Op, 0, 2*len(p.nodes)+1)}
	d := r.data(cfg, p.keepable)
	d.SendAt(time.Now().UnixMilli())
	c.data = d.Encode()
	if c.replaces != nil {
		w.Kind = "requeue"
		w.Ops = append(w.Ops, c.replaces.deletes()...)
	}
	for i, n := range p.nodes {
		if isUnmade(c.parents[i]) {
			w.Ops = append(w.Ops, driver.CreateOp(n.dir, parentMark, driver.Container, cfg.ACL))
			w.Risky = true
		}
		w.Ops = append(w.Ops, driver.CreateOp(n.dir+"/"+cfg.Dialect.Prefix(n.guid, n.kind), c.data, driver.EphemeralSequential, cfg.ACL))
		if c.parents[i].marked {
			w.Ops = append(w.Ops, driver.SetOp(n.dir, parentMark, driver.AnyVersion))
		}
	}
	if w.Risky {
		w.Joins = desk.freshNames.mayShare()
	}
	desk.Session.Submit(w)
	return w
}

// setRefused reports whether a write failed because this client may not set a parent, and
// remembers that parent as one that is not to be set.
func (c *creation) setRefused(w *session.Write) bool {
	at := session.AtFault(w.Results)
	if at < 0 || w.Ops[at].Kind != driver.OpSet || !errors.Is(w.Err, driver.ErrNoAuth) {
		return false
	}
	refused := &c.parents[slices.IndexFunc(c.parents, func(p parent) bool { return p.path == w.Ops[at].Path })]
	if refused.marked = false; !isUnmade(*refused) {
		c.desk.parents.add(*refused)
	}
	return true
}

// because adds to the error of a wait without a session, as text, what happened to the last try: a
// server that cuts the connection of each try may not accept the request.
func (c *creation) because(err error) error {
	if c.doubt == nil || !errors.Is(err, errs.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %v", err, c.doubt)
}

// write and abandon implement creating.

func (c *creation) write() *session.Write { return c.open }

func (c *creation) abandon() {
	c.end()
	if c.replaces != nil {
		c.replaces.Remove()
	}
}
