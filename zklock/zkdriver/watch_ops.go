package zkdriver

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Watch implements driver.Session.
func (s *session) Watch(ctx context.Context, path string) (driver.Node, <-chan driver.Event, error) {
	a := &arming{watched: watched{path, onData}}
	return readAndWatch(ctx, s, "watch", a, func(conn *zk.Conn) (driver.Node, error) { return getNode(conn, path) })
}

// WatchChildren implements driver.Session.
func (s *session) WatchChildren(ctx context.Context, path string) ([]string, driver.Stat, <-chan driver.Event, error) {
	a := &arming{watched: watched{path, onChildren}}
	l, events, err := readAndWatch(ctx, s, "watch children", a, func(conn *zk.Conn) (list, error) { return getChildren(conn, path) })
	return l.names, l.stat, events, err
}

// WatchExists implements driver.Session.
func (s *session) WatchExists(ctx context.Context, path string) (driver.Stat, bool, <-chan driver.Event, error) {
	type answer struct {
		stat  driver.Stat
		found bool
	}
	a := &arming{watched: watched{path, onData}, exists: true}
	r, events, err := readAndWatch(ctx, s, "watch exists", a, func(conn *zk.Conn) (answer, error) {
		found, stat, err := conn.Exists(path)
		if err != nil || !found {
			return answer{}, err
		}
		return answer{convertStat(stat), true}, nil
	})
	return r.stat, r.found, events, err
}

// readAndWatch performs a read that sets a watch.
func readAndWatch[T any](ctx context.Context, s *session, op string, a *arming, do func(*zk.Conn) (T, error)) (T, <-chan driver.Event, error) {
	var zero T
	c := call{op: op, path: a.path, size: pathSize(a.path) + 1, watch: a}
	if err := checkPath(a.path, false); err != nil {
		return zero, nil, wrap(c, err)
	}
	value, err := run(ctx, s, c, do)
	if err != nil {
		s.watches.giveUp(a)
		return zero, nil, err
	}
	return value, s.watches.channel(a), nil
}
