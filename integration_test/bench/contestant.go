package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

// contestant is a way to lock. The first one is ours.
type contestant struct {
	name  string
	floor bool // no lock at all
	open  func(server string) (locker, error)
}

var contestants = []contestant{
	{"zklock", false, openZklock},
	{"zk.Lock", false, openZKLock},
	{"raw create+delete", true, openRaw},
}

type zklockLocker struct{ client *zklock.Client }

func openZklock(server string) (locker, error) {
	c, err := zklock.Open("zk://" + server + "/bench-zklock?pool_max_sessions=1")
	if err != nil {
		return nil, err
	}
	return zklockLocker{c}, c.Ping(context.Background())
}

func (l zklockLocker) acquire(ctx context.Context, name string) (func() error, error) {
	lock, err := l.client.Mutex(name).Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return lock.Release(ctx) }, nil
}

func (l zklockLocker) close() { _ = l.client.Close() }

func connect(server, root string) (*zk.Conn, error) {
	conn, _, err := zk.Connect(strings.Split(server, ","), 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	if _, err = conn.Create(root, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

type zkLocker struct{ conn *zk.Conn }

func openZKLock(server string) (locker, error) {
	conn, err := connect(server, "/bench-zklock-peer")
	return zkLocker{conn}, err
}

func (l zkLocker) acquire(_ context.Context, name string) (func() error, error) {
	lock := zk.NewLock(l.conn, "/bench-zklock-peer/"+name, zk.WorldACL(zk.PermAll))
	return lock.Unlock, lock.Lock()
}

func (l zkLocker) close() { l.conn.Close() }

type rawLocker struct{ conn *zk.Conn }

func openRaw(server string) (locker, error) {
	conn, err := connect(server, "/bench-raw")
	return rawLocker{conn}, err
}

func (l rawLocker) acquire(_ context.Context, name string) (func() error, error) {
	path, err := l.conn.Create("/bench-raw/"+name+"-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	return func() error { return l.conn.Delete(path, -1) }, err
}

func (l rawLocker) close() { l.conn.Close() }
