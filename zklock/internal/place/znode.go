package place

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// parentMark is the data of a lock's znode made by this library, which may write it
// over. A znode that was found with other data was made by another program, and is
// never written. What another program puts into one of ours later is not looked for
// before each set: to set it under a version would make those of clients that
// contend for the name fail.
var parentMark = []byte("zklock")

// isMark reports whether the data of a lock's znode is this library's.
func isMark(data []byte) bool { return bytes.HasPrefix(data, parentMark) }

// Znode is the znode of a lock, or one above it, as a session finds it.
type Znode struct {
	Desk *Desk
	Path string
}

// ensure makes sure that a lock's znode exists and learns whether it is
// ours. A container removes itself once it has been used and is empty; servers
// before 3.5.1 have none, there it is persistent.
//
// One that has not been in use here for a while may be somebody else's by now, and
// is looked at anew before it is written; see parents.find for occupied.
func (z Znode) ensure(ctx context.Context, occupied bool) (parent, error) {
	s, path := z.Desk, z.Path
	if p, fresh, ok := s.parents.find(path, occupied); ok {
		if fresh || !p.ours {
			return p, nil
		}
		var err error
		if p.ours, err = z.claim(ctx); err == nil {
			s.parents.add(p)
			return p, nil
		}
		if !errors.Is(err, driver.ErrNoNode) {
			return parent{}, s.cfg.explain(err, path)
		}
		s.parents.forget(path)
	}
	found := parent{path: path, ours: true}
	mode := s.cfg.Dialect.ParentMode()
	create := func() error {
		if err := z.ensureAncestors(ctx); err != nil {
			return err
		}
		return z.create(ctx, parentMark, mode)
	}
	err := create()
	found.mine = err == nil && mode == driver.Container
	if errors.Is(err, driver.ErrNoNode) { // somebody removed the root
		err = s.Repeat(ctx, "parent", func(ctx context.Context) error { return ensureRoot(ctx, s.DS, s.cfg) })
		if err == nil {
			err = create()
		}
	}
	if errors.Is(err, driver.ErrUnimplemented) {
		err = z.create(ctx, parentMark, driver.Persistent)
	}
	if errors.Is(err, driver.ErrNodeExists) {
		found.ours, err = z.claim(ctx)
	}
	if err != nil {
		return parent{}, s.cfg.explain(err, path)
	}
	s.parents.add(found)
	return found, nil
}

func (z Znode) create(ctx context.Context, data []byte, mode driver.Mode) error {
	s, path := z.Desk, z.Path
	return s.Repeat(ctx, "parent", func(ctx context.Context) error {
		_, err := s.DS.Create(ctx, path, data, mode, s.cfg.acls())
		return err
	})
}

// ensureAncestors makes the znodes between the root and that of a lock whose
// name is a path, and refuses to go below another lock where its recipe would
// take the one for a contender of the other.
func (z Znode) ensureAncestors(ctx context.Context) error {
	s, path := z.Desk, z.Path
	cfg := s.cfg
	for i := len(cfg.Root) + 1; cfg.Dialect.Literal(); i++ {
		slash := strings.IndexByte(path[i:], '/')
		if slash < 0 {
			break
		}
		i += slash
		ancestor := path[:i]
		err := Znode{s, ancestor}.create(ctx, nil, cfg.Dialect.ParentMode())
		if errors.Is(err, driver.ErrUnimplemented) {
			err = Znode{s, ancestor}.create(ctx, nil, driver.Persistent)
		}
		if !errors.Is(err, driver.ErrNodeExists) && !errors.Is(err, driver.ErrNoAuth) {
			if err != nil {
				return err
			}
			continue
		}
		if cfg.Dialect.Family == queue.FamilyKazoo {
			continue
		}
		n, err := Znode{s, ancestor}.get(ctx)
		switch {
		case errors.Is(err, driver.ErrNoAuth):
		case err != nil:
			return err
		case isMark(n.Data):
			return fmt.Errorf("%w: %s is a lock itself, whose contenders would wait for the znode of one below it (dialect=%s)", errs.ErrConflict, ancestor, cfg.Dialect.Name)
		}
	}
	return nil
}

// claim looks at a lock's znode that was there before. ours says that its data
// is our mark, or was empty and is our mark now: with the version that was read,
// so that nobody's data is written over.
func (z Znode) claim(ctx context.Context) (ours bool, err error) {
	s, path := z.Desk, z.Path
	const tries = 4
	for range tries {
		n, err := z.get(ctx)
		if err != nil || len(n.Data) > 0 || !s.cfg.Dialect.Literal() {
			return isMark(n.Data), err
		}
		err = s.Repeat(ctx, "parent", func(ctx context.Context) error {
			_, err := s.DS.Set(ctx, path, parentMark, n.Stat.Version)
			return err
		})
		switch {
		case errors.Is(err, driver.ErrNoAuth):
			return false, nil
		case !errors.Is(err, driver.ErrBadVersion): // somebody has written, or we have and did not hear of it
			return err == nil, err
		}
	}
	return false, nil
}

func (z Znode) get(ctx context.Context) (n driver.Node, err error) {
	s, path := z.Desk, z.Path
	err = s.Repeat(ctx, "parent", func(ctx context.Context) (err error) {
		n, err = s.DS.Get(ctx, path)
		return err
	})
	return n, err
}
