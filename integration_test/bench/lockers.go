package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/integration_test/bench/worker"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

// The root of each contestant's znodes.
const (
	zklockRoot  = "/bench/zklock"
	zkLockRoot  = "/bench/zk"
	rawRoot     = "/bench/raw"
	curatorRoot = "/bench/curator" // CuratorBench.java has it, too
)

// roots are those of the contestants whose znodes the runner counts.
var roots = map[string]string{ours: zklockRoot, zkLock: zkLockRoot}

// openLocker opens one of the contestants that are part of this program. A setting may follow the
// name of zklock after a comma: a key of the URL and its value, or the number of sessions.
func openLocker(contestant, hosts string) (worker.Locker, error) {
	library, setting, _ := strings.Cut(contestant, ", ")
	switch {
	case contestant == zklockEach:
		return &sessionEach{open: func() (worker.Locker, error) { return openZklock(hosts, "1 sessions") }}, nil
	case contestant == zkLockEach:
		return &sessionEach{open: func() (worker.Locker, error) { return openLocker(zkLock, hosts) }}, nil
	}
	switch library {
	case ours:
		return openZklock(hosts, setting)
	case zkLock:
		conn, err := connect(hosts, zkLockRoot)
		return zkLocker{conn}, err
	case floor:
		conn, err := connect(hosts, rawRoot)
		return rawLocker{conn}, err
	}
	return nil, fmt.Errorf("unknown contestant %q", contestant)
}

// roundTrip is the time between a request and its answer in the ensemble in memory, as between two
// sites.
const roundTrip = 10 * time.Millisecond

// openZklock opens a client with the default settings, one of an ensemble in memory, or one with a
// single session and the setting.
func openZklock(hosts, setting string) (worker.Locker, error) {
	switch ours + ", " + setting {
	case inMemory:
		c, err := zklock.OpenConnector(memdriver.New(memdriver.WithLatency(roundTrip / 2)).Connector())
		return zklockLocker{c, c}, err
	case defaults:
		c, err := zklock.Open("zk://" + hosts + zklockRoot)
		if err != nil {
			return nil, err
		}
		return zklockLocker{c, c}, c.Ping(context.Background())
	}
	const keep = "&keep=2s"
	url := "zk://" + hosts + zklockRoot + "?pool_max_sessions="
	if sessions, ok := strings.CutSuffix(setting, " sessions"); ok {
		url, setting = url+sessions, ""
	} else {
		url, setting = url+"1", "&"+setting
	}
	c, err := zklock.Open(url + setting)
	if err != nil {
		return nil, err
	}
	keeper := c
	if setting != keep {
		if keeper, err = zklock.Open(url + keep); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return zklockLocker{c, keeper}, c.Ping(context.Background())
}

type zklockLocker struct{ client, keeping *zklock.Client }

func (l zklockLocker) acquirer(kind, name string) zklock.Acquirer {
	switch kind {
	case worker.Reader:
		return l.client.RWMutex(name).Reader()
	case worker.Writer:
		return l.client.RWMutex(name).Writer()
	case worker.All, worker.Both:
		a := make([]zklock.Acquirer, worker.AllNames[kind])
		for i := range a {
			a[i] = l.client.Mutex(name + "-" + strconv.Itoa(i))
		}
		return zklock.All(a...)
	case worker.Semaphore, worker.Semaphore5:
		return l.client.Semaphore(name, worker.Permits[kind])
	case worker.Keep:
		return l.keeping.Mutex(name)
	}
	return l.client.Mutex(name)
}

func (l zklockLocker) Acquire(ctx context.Context, kind, name string, _ int) (func() error, error) {
	var opts []zklock.AcquireOption
	switch kind {
	case worker.Async:
		opts = []zklock.AcquireOption{zklock.WithAsyncRelease()}
	case worker.Alone:
		opts = []zklock.AcquireOption{zklock.WithoutHandover()}
	}
	lock, err := l.acquirer(kind, name).Acquire(ctx, opts...)
	if err != nil {
		return nil, err
	}
	return func() error {
		err := lock.Release(context.WithoutCancel(ctx))
		if errors.Is(err, zklock.ErrReleasePending) {
			err = nil // the release is slow, which the figures show, but it is not a failure
		}
		return err
	}, nil
}

func (l zklockLocker) Try(ctx context.Context, name string) error {
	lock, err := l.client.Mutex(name).TryAcquire(ctx)
	if errors.Is(err, zklock.ErrNotAcquired) {
		return nil
	}
	if err == nil {
		err = errors.Join(errors.New("acquired a lock that is held already"), lock.Release(ctx))
	}
	return err
}

func (l zklockLocker) Prepare(int, bool) error { return nil }

func (l zklockLocker) Leave(int) {}

func (l zklockLocker) Close() {
	_ = l.client.Close()
	_ = l.keeping.Close()
}

// sessionTimeout is that of sessions of go-zookeeper.
const sessionTimeout = 10 * time.Second

// connect opens a session with go-zookeeper and creates the nodes down to root.
func connect(hosts, root string) (*zk.Conn, error) {
	conn, _, err := zk.Connect(strings.Split(hosts, ","), sessionTimeout, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	for _, p := range []string{path.Dir(root), root} {
		if _, err = conn.Create(p, nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

// exclusive reports whether a kind of cycle is an exclusive lock of one name. A library
// without the variants of a kind does the same for all of them.
func exclusive(kind string) bool {
	return kind == worker.Mutex || kind == worker.Async || kind == worker.Alone || kind == worker.Keep
}

type zkLocker struct{ conn *zk.Conn }

func (l zkLocker) Acquire(_ context.Context, kind, name string, _ int) (func() error, error) {
	if !exclusive(kind) {
		return nil, worker.ErrUnsupported
	}
	lock := zk.NewLock(l.conn, zkLockRoot+"/"+name, zk.WorldACL(zk.PermAll))
	return lock.Unlock, lock.Lock()
}

func (l zkLocker) Try(context.Context, string) error { return worker.ErrUnsupported }

func (l zkLocker) Prepare(int, bool) error { return nil }

func (l zkLocker) Leave(int) {}

func (l zkLocker) Close() { l.conn.Close() }

// rawLocker does not lock: each cycle is one create and one delete, and each try is one
// getChildren.
type rawLocker struct{ conn *zk.Conn }

func (l rawLocker) Acquire(_ context.Context, kind, name string, _ int) (func() error, error) {
	if !exclusive(kind) {
		return nil, worker.ErrUnsupported
	}
	if !strings.HasPrefix(name, "/") {
		name = rawRoot + "/" + name + "-"
	}
	node, err := l.conn.Create(name, nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	return func() error { return l.conn.Delete(node, -1) }, err
}

func (l rawLocker) Try(_ context.Context, name string) error {
	_, _, err := l.conn.Children(zklockRoot + "/" + name)
	return err
}

func (l rawLocker) Prepare(int, bool) error { return nil }

func (l rawLocker) Leave(int) {}

func (l rawLocker) Close() { l.conn.Close() }

// sessionEach opens a locker for each goroutine, as if each was a process.
type sessionEach struct {
	open    func() (worker.Locker, error)
	lockers []worker.Locker
}

// Prepare opens a few at a time, since a server's queue of new connections has a limit.
func (l *sessionEach) Prepare(goroutines int, _ bool) error {
	more := make([]worker.Locker, max(goroutines-len(l.lockers), 0))
	errs, gate := make([]error, len(more)), make(chan struct{}, 16)
	var g sync.WaitGroup
	for i := range more {
		g.Go(func() {
			gate <- struct{}{}
			more[i], errs[i] = l.open()
			<-gate
		})
	}
	g.Wait()
	l.lockers = append(l.lockers, more...)
	return errors.Join(errs...)
}

func (l *sessionEach) Acquire(ctx context.Context, kind, name string, goroutine int) (func() error, error) {
	return l.lockers[goroutine].Acquire(ctx, kind, name, goroutine)
}

func (l *sessionEach) Try(context.Context, string) error { return worker.ErrUnsupported }

func (l *sessionEach) Leave(int) {}

func (l *sessionEach) Close() {
	var g sync.WaitGroup
	for _, one := range l.lockers {
		if one != nil {
			g.Go(one.Close)
		}
	}
	g.Wait()
}
