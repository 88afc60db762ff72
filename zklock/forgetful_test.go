package zklock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// forgetful is an ensemble that agrees with everything and remembers nothing
// but how many watches it was asked for.
type forgetful struct {
	sessions, zxid, watches atomic.Int64
	never                   chan driver.Event
}

func (e *forgetful) Connect(_ context.Context, timeout time.Duration) (driver.Session, error) {
	return &forgetfulSession{ensemble: e, id: e.sessions.Add(1), timeout: timeout, born: time.Now(), changed: make(chan struct{})}, nil
}

func (e *forgetful) Driver() driver.Driver { return nil }
func (e *forgetful) Close() error          { return nil }

type forgetfulSession struct {
	ensemble *forgetful
	id       int64
	timeout  time.Duration
	born     time.Time
	changed  chan struct{}
}

func (s *forgetfulSession) create(path string, mode driver.Mode) string {
	if mode.Sequential() {
		// One suffix for all: nobody is ever compared with another.
		path += "0000000001"
	}
	return path
}

func (s *forgetfulSession) Create(_ context.Context, path string, _ []byte, mode driver.Mode, _ []driver.ACL) (string, error) {
	return s.create(path, mode), nil
}

func (s *forgetfulSession) Delete(context.Context, string, int32) error { return nil }

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
	s.ensemble.watches.Add(1)
	n, err := s.Get(ctx, path)
	return n, s.ensemble.never, err
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

func forgetfulClient(t *testing.T) (*zklock.Client, *forgetful) {
	e := &forgetful{never: make(chan driver.Event)}
	c, err := zklock.OpenConnector(e, zklock.WithRoot("/locks"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, e
}
