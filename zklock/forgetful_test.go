package zklock_test

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// forgetful is an ensemble that agrees to every request and stores only watches, by a hash
// of the path. So it adds hardly anything to what is measured with it.
type forgetful struct {
	sessions, zxid atomic.Int64
	seed           maphash.Seed
	lists          bool // it remembers the newest child below each path

	mu      sync.Mutex
	watches map[uint64]chan driver.Event // guarded by mu
	watched int                          // guarded by mu; how many watches were requested
	child   map[uint64]string            // guarded by mu; the newest child below a path, until it is listed
}

func (e *forgetful) watch(path string) <-chan driver.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watched++
	event := make(chan driver.Event, 1)
	e.watches[maphash.String(e.seed, path)] = event
	return event
}

// deleted sends the event of a znode's deletion to the watches on it and on its parent's
// children, if there are any.
func (e *forgetful) deleted(path string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := maphash.String(e.seed, path)
	if event := e.watches[key]; event != nil {
		delete(e.watches, key)
		event <- driver.Event{Type: driver.EventDeleted, Path: path}
		close(event)
	}
	dir := path[:strings.LastIndexByte(path, '/')]
	key = maphash.String(e.seed, dir+"/")
	if event := e.watches[key]; event != nil {
		delete(e.watches, key)
		event <- driver.Event{Type: driver.EventChildren, Path: dir}
		close(event)
	}
	delete(e.child, maphash.String(e.seed, dir))
}

// created remembers a node, if lists is set.
func (e *forgetful) created(path string) {
	if e.lists {
		e.mu.Lock()
		defer e.mu.Unlock()
		slash := strings.LastIndexByte(path, '/')
		e.child[maphash.String(e.seed, path[:slash])] = path[slash+1:]
	}
}

// asked returns how many watches were requested.
func (e *forgetful) asked() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.watched
}

func (e *forgetful) Connect(_ context.Context, timeout time.Duration) (driver.Session, error) {
	return &forgetfulSession{ensemble: e, id: e.sessions.Add(1), timeout: timeout, born: time.Now(), changed: make(chan struct{})}, nil
}

func (e *forgetful) Driver() driver.Driver { return nil }

func (e *forgetful) Diagnose() error { return nil }
func (e *forgetful) Close() error    { return nil }

type forgetfulSession struct {
	ensemble *forgetful
	id       int64
	timeout  time.Duration
	born     time.Time
	changed  chan struct{}
}

func (s *forgetfulSession) create(path string, mode driver.Mode) string {
	if mode.Sequential() {
		// All nodes have the same suffix: no list returns them, so none are compared.
		path += "0000000001"
		s.ensemble.created(path)
	}
	return path
}

func (s *forgetfulSession) Create(_ context.Context, path string, _ []byte, mode driver.Mode, _ []driver.ACL) (string, error) {
	return s.create(path, mode), nil
}

func (s *forgetfulSession) Delete(_ context.Context, path string, _ int32) error {
	s.ensemble.deleted(path)
	return nil
}

func (s *forgetfulSession) Get(context.Context, string) (driver.Node, error) {
	return driver.Node{Data: []byte("zklock"), Stat: driver.Stat{EphemeralOwner: s.id}}, nil
}

func (s *forgetfulSession) Set(context.Context, string, []byte, int32) (driver.Stat, error) {
	return driver.Stat{Mzxid: s.ensemble.zxid.Add(1), NumChildren: 1}, nil
}

func (s *forgetfulSession) Children(context.Context, string) ([]string, driver.Stat, error) {
	return nil, driver.Stat{}, nil
}

func (s *forgetfulSession) Sync(context.Context, string) error { return nil }

func (s *forgetfulSession) Watch(ctx context.Context, path string) (driver.Node, <-chan driver.Event, error) {
	n, err := s.Get(ctx, path)
	return n, s.ensemble.watch(path), err
}

func (s *forgetfulSession) WatchChildren(_ context.Context, path string) ([]string, driver.Stat, <-chan driver.Event, error) {
	e := s.ensemble
	event := e.watch(path + "/")
	e.mu.Lock()
	defer e.mu.Unlock()
	key := maphash.String(e.seed, path)
	name := e.child[key]
	delete(e.child, key)
	return []string{name}, driver.Stat{}, event, nil
}

func (s *forgetfulSession) WatchExists(_ context.Context, path string) (driver.Stat, bool, <-chan driver.Event, error) {
	return driver.Stat{}, true, s.ensemble.watch(path), nil
}

func (s *forgetfulSession) Multi(_ context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	zxid := s.ensemble.zxid.Add(1)
	results := make([]driver.OpResult, len(ops))
	for i, op := range ops {
		switch op.Kind {
		case driver.OpCreate:
			results[i].Path = s.create(op.Path, op.Mode)
		case driver.OpSet:
			results[i].Stat = driver.Stat{Mzxid: zxid, NumChildren: 1}
		case driver.OpDelete:
			s.ensemble.deleted(op.Path)
		}
	}
	return results, nil
}

func (s *forgetfulSession) ID() int64                 { return s.id }
func (s *forgetfulSession) Timeout() time.Duration    { return s.timeout }
func (s *forgetfulSession) Conn() (uint64, time.Time) { return 1, s.born }
func (s *forgetfulSession) Server() string            { return "nowhere" }
func (s *forgetfulSession) State() (driver.State, <-chan struct{}) {
	return driver.Connected, s.changed
}
func (s *forgetfulSession) Close(context.Context) error { return nil }

func newForgetful() *forgetful {
	return &forgetful{seed: maphash.MakeSeed(), watches: make(map[uint64]chan driver.Event), child: make(map[uint64]string)}
}

func forgetfulClient(t testing.TB, opts ...zklock.Option) (*zklock.Client, *forgetful) {
	return forgetfulConfig(t, zklock.Config{}, opts...)
}

func forgetfulConfig(t testing.TB, cfg zklock.Config, opts ...zklock.Option) (*zklock.Client, *forgetful) {
	e := newForgetful()
	cfg.Connector, cfg.Root = e, "/locks"
	c, err := zklock.OpenConfig(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, e
}
