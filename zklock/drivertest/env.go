package drivertest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// patience is how long a subtest may take, not counting the time the ensemble takes to remove
// containers. It is the only deadline: everything that a test waits for may take until then.
const patience = 60 * time.Second

// env has the helpers of a test. They end the test when they fail, so they must be called
// only on the test's own goroutine.
type env struct {
	*testing.T

	// h is the test's ensemble.
	h Harness

	// ctx ends when the test's time is over.
	ctx context.Context

	// root is the path of a persistent znode, empty at first, that no other test uses.
	root string

	// skipped is why the test was skipped, or empty.
	skipped string
}

// skip ends the test because its harness lacks what it needs.
func (e *env) skip(reason string) {
	e.Helper()
	e.skipped = reason
	e.Skip(reason)
}

// newEnv makes an env with a root of its own, which is removed when the test has ended.
func newEnv(t *testing.T, h Harness) *env {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience+4*h.Reaping())
	t.Cleanup(cancel)
	e := &env{T: t, h: h, ctx: ctx, root: "/drivertest-" + strconv.FormatUint(rand.Uint64(), 36)}
	// The cleaner is opened first, so that it is closed last: it removes the test's
	// znodes when the test's own sessions have ended.
	cleaner := e.connect()
	e.create(cleaner, e.root, nil, driver.Persistent)
	t.Cleanup(func() { e.remove(cleaner, e.root) })
	return e
}

// remove deletes a path with everything below it. It ignores errors.
func (e *env) remove(s driver.Session, path string) {
	names, _, err := s.Children(e.ctx, path)
	if err != nil {
		return
	}
	for _, name := range names {
		e.remove(s, path+"/"+name)
	}
	_ = s.Delete(e.ctx, path, driver.AnyVersion)
}

// connect opens a session that the test will not expire.
func (e *env) connect() driver.Session {
	e.Helper()
	_, longest := e.h.Limits()
	return e.open(e.h.Connector(), longest)
}

// connectShort opens a session that the test can expire.
func (e *env) connectShort() driver.Session {
	e.Helper()
	return e.open(e.h.Connector(), e.h.Timeout())
}

// connectAuthenticated opens a session with an identity, or skips the test.
func (e *env) connectAuthenticated() driver.Session {
	e.Helper()
	c, ok := e.h.Authenticated()
	if !ok {
		e.skip("the harness has no authenticated sessions")
	}
	_, longest := e.h.Limits()
	return e.open(c, longest)
}

// open opens a session with c. Both are closed when the test has ended.
func (e *env) open(c driver.Connector, timeout time.Duration) driver.Session {
	e.Helper()
	e.Cleanup(func() { _ = c.Close() })
	s, err := c.Connect(e.ctx, timeout)
	e.ok(err, "connect")
	e.Cleanup(func() { _ = s.Close(e.ctx) })
	return s
}

// hold keeps back the replies to s until release is called, or the test ends. It skips the
// test if the harness cannot do that.
func (e *env) hold(s driver.Session) (release func()) {
	e.Helper()
	release, ok := e.h.Hold(s)
	if !ok {
		e.skip("the harness cannot hold replies back")
	}
	e.Cleanup(release)
	return release
}

// cut cuts the connection of s until heal is called, or the test ends. It returns when the
// session is suspended.
func (e *env) cut(s driver.Session) (heal func()) {
	e.Helper()
	heal = e.h.Cut(s)
	e.Cleanup(heal)
	e.reaches(s, driver.Suspended)
	return heal
}

// expire makes the ensemble expire s, and returns when the session has the state Expired.
func (e *env) expire(s driver.Session) {
	e.Helper()
	e.ok(e.h.Expire(e.ctx, s), "expire the session")
	e.reaches(s, driver.Expired)
}

// path returns the path of a child of the test's root.
func (e *env) path(name string) string { return e.root + "/" + name }

// create makes a znode that gives every session all permissions.
func (e *env) create(s driver.Session, path string, data []byte, mode driver.Mode) string {
	e.Helper()
	created, err := s.Create(e.ctx, path, data, mode, everyone())
	e.ok(err, "create "+path)
	return created
}

// set replaces a znode's data, whatever its version.
func (e *env) set(s driver.Session, path, data string) driver.Stat {
	e.Helper()
	stat, err := s.Set(e.ctx, path, []byte(data), driver.AnyVersion)
	e.ok(err, "set "+path)
	return stat
}

// delete deletes a znode, whatever its version.
func (e *env) delete(s driver.Session, path string) {
	e.Helper()
	e.ok(s.Delete(e.ctx, path, driver.AnyVersion), "delete "+path)
}

// multi applies ops, and checks that each has a result without an error.
func (e *env) multi(s driver.Session, ops ...driver.Op) []driver.OpResult {
	e.Helper()
	results, err := s.Multi(e.ctx, ops)
	e.ok(err, "multi")
	if len(results) != len(ops) {
		e.Fatalf("multi of %d operations has %d results", len(ops), len(results))
	}
	for i, r := range results {
		e.ok(r.Err, "result "+ops[i].Kind.String()+" of an applied multi")
	}
	return results
}

// busy sets a znode's data again and again with s until stop is called, which returns when
// that has ended.
func (e *env) busy(s driver.Session, path string) (stop func()) {
	ctx, cancel := context.WithCancel(e.ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_, _ = s.Set(ctx, path, nil, driver.AnyVersion) // its failures do not matter: it is there to use zxids
			runtime.Gosched()
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// read reads a znode as it is now. It syncs first: the server that s is connected to may lag
// behind changes that another session has made.
func (e *env) read(s driver.Session, path string) driver.Node {
	e.Helper()
	e.ok(s.Sync(e.ctx, path), "sync "+path)
	node, err := s.Get(e.ctx, path)
	e.ok(err, "get "+path)
	return node
}

// absent fails the test if a znode exists now.
func (e *env) absent(s driver.Session, path string) {
	e.Helper()
	e.ok(s.Sync(e.ctx, path), "sync "+path)
	_, err := s.Get(e.ctx, path)
	e.is(err, driver.ErrNoNode, "get "+path+", which must not exist")
}

// exists reports whether a znode exists now.
func (e *env) exists(s driver.Session, path string) bool {
	e.Helper()
	e.ok(s.Sync(e.ctx, path), "sync "+path)
	_, err := s.Get(e.ctx, path)
	if errors.Is(err, driver.ErrNoNode) {
		return false
	}
	e.ok(err, "get "+path)
	return true
}

// names lists a znode's children as they are now, sorted.
func (e *env) names(s driver.Session, path string) []string {
	e.Helper()
	e.ok(s.Sync(e.ctx, path), "sync "+path)
	names, _, err := s.Children(e.ctx, path)
	e.ok(err, "children of "+path)
	slices.Sort(names)
	return names
}

// data checks that a znode has that content now.
func (e *env) data(s driver.Session, path, want string) {
	e.Helper()
	if got := e.read(s, path).Data; !bytes.Equal(got, []byte(want)) {
		e.Fatalf("data of %s = %q, want %q", path, got, want)
	}
}

func everyone() []driver.ACL { return driver.OpenACL(driver.PermAll) }
