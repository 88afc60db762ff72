package main

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// recipe is a way to build a lock from ZooKeeper's znodes.
type recipe struct {
	name string
	join func(ctx context.Context, server string) (member, error) // the caller closes a member that is not nil, after an error too
}

// member is one session that contends for the lock.
type member interface {
	// acquire waits for the lock. It calls waits each time it begins to wait, after
	// it has armed its watch.
	acquire(ctx context.Context, waits func()) (release func() error, err error)

	close()
}

var recipes = []recipe{
	{"all watch one node", raw(watchNode)},
	{"all watch the children", raw(watchChildren)},
	{"each watches the node ahead", queue},
}

const root = "/herd"

// errNoSession means that a recipe of this file cannot open a session. zklock's recipe
// returns zklock.ErrUnavailable.
var errNoSession = errors.New("the server closes connections before it opens a session")

// conn is a member that uses a recipe of this file.
type conn struct {
	*zk.Conn
	wait func(ctx context.Context, c *zk.Conn, waits func()) (node string, err error)
}

// raw returns the join function of a recipe. wait waits for the lock, and returns the node
// that the release has to delete.
func raw(wait func(ctx context.Context, c *zk.Conn, waits func()) (string, error)) func(context.Context, string) (member, error) {
	return func(ctx context.Context, server string) (member, error) {
		c, events, err := zk.Connect([]string{server}, 10*time.Second, zk.WithLogger(silent{}))
		if err != nil {
			return nil, err
		}
		for closed := 0; c.State() != zk.StateHasSession; {
			select {
			case e := <-events:
				if e.State != zk.StateDisconnected {
					continue
				}
				// The ZooKeeper library would try for ever, and report nothing.
				if closed++; closed == 3 {
					c.Close()
					return nil, errNoSession
				}
			case <-ctx.Done():
				c.Close()
				return nil, ctx.Err()
			}
		}
		m := conn{c, wait}
		for _, dir := range []string{root, root + "/children"} {
			if _, err := c.Create(dir, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				return m, err
			}
		}
		return m, nil
	}
}

func (c conn) acquire(ctx context.Context, waits func()) (func() error, error) {
	node, err := c.wait(ctx, c.Conn, waits)
	return func() error { return c.Delete(node, -1) }, err
}

func (c conn) close() { c.Close() }

// watchNode waits with the first recipe: the session that creates the node holds the lock.
// When the node is deleted, all waiters try to create it.
func watchNode(ctx context.Context, c *zk.Conn, waits func()) (string, error) {
	const node = root + "/node"
	for {
		_, err := c.Create(node, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		if !errors.Is(err, zk.ErrNodeExists) {
			return node, err
		}
		there, _, event, err := c.ExistsW(node)
		if err != nil {
			return "", err
		}
		if there {
			if err := await(ctx, event, waits); err != nil {
				return "", err
			}
		}
	}
}

// watchChildren waits with the second recipe: the session with the oldest child holds the
// lock. When a child is created or deleted, all waiters list the children.
func watchChildren(ctx context.Context, c *zk.Conn, waits func()) (string, error) {
	mine, err := c.Create(root+"/children/n-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return "", err
	}
	for {
		names, _, event, err := c.ChildrenW(path.Dir(mine))
		if err != nil || slices.Min(names) == path.Base(mine) {
			return mine, err
		}
		if err := await(ctx, event, waits); err != nil {
			return "", err
		}
	}
}

func await(ctx context.Context, event <-chan zk.Event, waits func()) error {
	waits()
	select {
	case e := <-event:
		return e.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// silent discards the log messages of the ZooKeeper library.
type silent struct{}

func (silent) Printf(string, ...any) {}
