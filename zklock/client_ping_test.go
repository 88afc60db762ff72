package zklock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// rooted creates the root. All clients have the given rights on it; the session that is
// returned has all rights.
func rooted(t *testing.T, e *memdriver.Ensemble, perms driver.Perm) driver.Session {
	t.Helper()
	s, err := e.As("operator", driver.NewSecret("all")).Connect(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	acl := append(driver.CreatorACL(driver.PermAll), driver.OpenACL(perms)...)
	if _, err := s.Create(t.Context(), "/zklock", nil, driver.Persistent, acl); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestPingSaysWhichRightIsMissingWhere(t *testing.T) {
	const all = driver.PermRead | driver.PermCreate | driver.PermDelete
	for _, c := range []struct {
		what   string
		perms  driver.Perm
		says   []string // what the error contains; nil if none is expected
		logged string   // what is logged; empty if nothing is
	}{
		{what: "all", perms: all},
		{what: "no READ", perms: all &^ driver.PermRead, says: []string{"no READ on /zklock,"}},
		{what: "no CREATE", perms: all &^ driver.PermCreate, says: []string{"no CREATE on /zklock,"}},
		{what: "no DELETE", perms: all &^ driver.PermDelete, logged: "permission=DELETE on=/zklock "},
		{what: "only READ", perms: driver.PermRead, says: []string{"no CREATE on /zklock,"}},
		{what: "no WRITE, which the root does not need", perms: all &^ driver.PermWrite},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			operator := rooted(t, e, c.perms)
			var log locked
			client := connect(t, e.Connector(), nil, zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			znodes := func() string {
				_, tree, _ := strings.Cut(e.Dump(), "\n/ ")
				return tree
			}
			before := znodes()
			err := client.Ping(t.Context())
			if (err == nil) != (c.says == nil) || err != nil && !errors.Is(err, zklock.ErrNoAuth) {
				t.Errorf("%s: Ping returned %v, want an error that contains %q", c.what, err, c.says)
			}
			for _, word := range append(c.says, "without a user") {
				if err != nil && !strings.Contains(err.Error(), word) {
					t.Errorf("%s: the error %q does not contain %q", c.what, err, word)
				}
			}
			synctest.Wait() // for the log
			if !strings.Contains(log.String(), c.logged) || c.logged == "" && log.String() != "" {
				t.Errorf("%s: logged %q, want %q", c.what, log.String(), c.logged)
			}
			// What Ping reports is what an acquisition meets.
			_, err2 := client.Mutex("x").Acquire(t.Context())
			if (err2 == nil) != (err == nil) {
				t.Errorf("%s: Ping returned %v, but Acquire %v", c.what, err, err2)
			}
			if err != nil && znodes() != before {
				t.Errorf("%s: znodes were left behind:\n%s", c.what, znodes())
			}
			if _, _, err := operator.Children(t.Context(), "/zklock"); err != nil {
				t.Error(err)
			}
		})
	}
}

// Ping names all the rights that were taken away from a client while it is in use. It
// also names the right that the client lacks above a root that does not exist yet.
func TestPingNamesRightsThatWereTakenAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		operator := rooted(t, e, driver.PermAll)
		client := connect(t, e.Connector(), nil)
		if err := client.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := operator.Multi(t.Context(), []driver.Op{
			driver.DeleteOp("/zklock", driver.AnyVersion),
			driver.CreateOp("/zklock", nil, driver.Persistent, driver.CreatorACL(driver.PermAll)),
		}); err != nil {
			t.Fatal(err)
		}
		err := client.Ping(t.Context())
		for _, word := range []string{"without a user", "no READ on /zklock,", "no CREATE on /zklock,"} {
			if !errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), word) {
				t.Errorf("the error %v does not contain %q", err, word)
			}
		}
		below := openConfig(t, zklock.Config{Connector: e.Connector(), Root: "/zklock/of/app"})
		for what, use := range map[string]func() error{
			"Ping":    func() error { return below.Ping(t.Context()) },
			"Acquire": func() error { _, err := below.Mutex("x").Acquire(t.Context()); return err },
		} {
			if err := use(); !errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), "no CREATE on /zklock, needed to create /zklock/of:") {
				t.Errorf("%s with a root that the client may not create: %v", what, err)
			}
		}
		if _, err := operator.Create(t.Context(), "/zklock/of", nil, driver.Persistent, driver.OpenACL(driver.PermRead)); err != nil {
			t.Fatal(err)
		}
		if err := below.Ping(t.Context()); !errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), "no CREATE on /zklock/of, needed to create /zklock/of/app") {
			t.Errorf("Ping with a root that the client may not create: %v", err)
		}
	})
}

// No other client can notice Ping's probe: it creates, changes and removes nothing, not
// even for a moment, and the counters in the root's Stat do not change.
func TestPingChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		operator := rooted(t, e, driver.PermAll)
		client := connect(t, e.Connector(), nil)
		before, err := operator.Get(t.Context(), "/zklock")
		if err != nil {
			t.Fatal(err)
		}
		_, changed, err := operator.Watch(t.Context(), "/zklock")
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := client.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		after, err := operator.Get(t.Context(), "/zklock")
		if err != nil || after.Stat != before.Stat {
			t.Errorf("the root changed from %+v to %+v, %v", before.Stat, after.Stat, err)
		}
		select {
		case e := <-changed:
			t.Errorf("a watch fired: %+v", e)
		default:
		}
		if dump := e.Dump(); strings.Contains(dump, "probe") {
			t.Errorf("left behind:\n%s", dump)
		}
	})
}

// Ping finds out that the servers have no container znodes, so that an operator learns of it before
// znodes accumulate. In a dialect that needs no containers, Ping does not ask for one.
func TestPingNamesServersWithoutContainers(t *testing.T) {
	for _, c := range []struct {
		dialect string
		err     error
		asks    int64
		warns   bool
	}{
		{"zklock", nil, 1, false},
		{"zklock", driver.ErrUnimplemented, 1, true},
		{"zklock", driver.ErrNoAuth, 1, false}, // shows nothing
		{"kazoo", driver.ErrUnimplemented, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			var log locked
			m := &makers{Connector: e.Connector(), create: c.err}
			client := connect(t, m, map[string]string{"dialect": c.dialect}, zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			if err := client.Ping(t.Context()); err != nil {
				t.Errorf("%s, %v: Ping: %v", c.dialect, c.err, err)
			}
			if n := m.creates.Load(); n != c.asks {
				t.Errorf("%s, %v: asked for %d containers, want %d", c.dialect, c.err, n, c.asks)
			}
			synctest.Wait() // for the log
			if got := strings.Contains(log.String(), "lack container znodes"); got != c.warns {
				t.Errorf("%s, %v: a warning: %v, want %v: %s", c.dialect, c.err, got, c.warns, log.String())
			}
			if dump := e.Dump(); strings.Contains(dump, "probe") {
				t.Errorf("left behind:\n%s", dump)
			}
		})
	}
}

// ZooKeeper compares a password with access lists only, and so accepts a wrong one when
// the session opens. The first call that uses the session reports it, whatever call that
// is.
func TestWrongPasswordIsReportedOnFirstUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.Named(t.Name())
		defer e.Close()
		open := func(password string) *zklock.Client {
			c, err := zklock.Open("mem://app:" + password + "@" + t.Name() + "/locks")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		right := open("s3cret")
		held := mustLock(t)(right.Mutex("x").Acquire(t.Context()))
		for what, use := range map[string]func(c *zklock.Client) error{
			"Ping":       func(c *zklock.Client) error { return c.Ping(t.Context()) },
			"Acquire":    func(c *zklock.Client) error { _, err := c.Mutex("x").Acquire(t.Context()); return err },
			"TryAcquire": func(c *zklock.Client) error { _, err := c.Mutex("y").TryAcquire(t.Context()); return err },
			"Contenders": func(c *zklock.Client) error { _, err := c.Contenders(t.Context(), "x"); return err },
			"Break":      func(c *zklock.Client) error { return c.Break(t.Context(), "x", "_c_0-__WRIT__0000000000") },
		} {
			began := time.Now()
			err := use(open("wr0ng"))
			if !errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), `"app"`) || !strings.Contains(err.Error(), "password is wrong") || !strings.Contains(err.Error(), "/locks") {
				t.Errorf("%s: %v, want ErrNoAuth with the user, the root and the advice that the password is wrong", what, err)
			}
			if err != nil && (strings.Contains(err.Error(), "wr0ng") || strings.Count(err.Error(), "not authorized") > 2) {
				t.Errorf("%s: the error shows the password, or repeats itself: %v", what, err)
			}
			if d := time.Since(began); d > time.Second {
				t.Errorf("%s took %v, want at most a second", what, d)
			}
		}
		if err := right.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		mustRelease(t, held)
	})
}

// The root is open to all users, as an operator may leave it. A wrong password is
// refused only at the znodes of locks, or at those of contenders, and is reported there.
func TestWrongPasswordIsReportedByLocksToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.Named(t.Name())
		defer e.Close()
		operator, err := e.Connector().Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = operator.Close(context.Background()) }()
		for _, path := range []string{"/locks", "/locks/shared"} {
			if _, err := operator.Create(t.Context(), path, nil, driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
				t.Fatal(err)
			}
		}
		open := func(password string) *zklock.Client {
			c, err := zklock.Open("mem://app:" + password + "@" + t.Name() + "/locks")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		right, wrong := open("s3cret"), open("wr0ng")
		own := mustLock(t)(right.Mutex("own").Acquire(t.Context()))
		shared := mustLock(t)(right.Mutex("shared").Acquire(t.Context())) // below a znode that all users may use
		if err := wrong.Ping(t.Context()); err != nil {
			t.Fatalf("Ping looks only at the root, which is open, and failed: %v", err)
		}
		for what, use := range map[string]func(name string) error{
			"Acquire":    func(name string) error { _, err := wrong.Mutex(name).Acquire(t.Context()); return err },
			"TryAcquire": func(name string) error { _, err := wrong.RWMutex(name).Reader().TryAcquire(t.Context()); return err },
			"Semaphore":  func(name string) error { _, err := wrong.Semaphore(name+"-s", 1).Acquire(t.Context()); return err },
			"Contenders": func(name string) error { _, err := wrong.Contenders(t.Context(), name); return err },
			"Break": func(name string) error {
				return wrong.Break(t.Context(), name, "_c_00000000000000000000000000000000-__WRIT__0000000000")
			},
		} {
			for _, name := range []string{"own", "shared"} {
				if what == "Break" && name == "shared" {
					continue // every user that may delete below the lock's znode can break the lock
				}
				if what == "Semaphore" {
					mustRelease(t, mustLock(t)(right.Semaphore(name+"-s", 1).Acquire(t.Context())))
				}
				err := use(name)
				synctest.Wait() // until the call has cleaned up
				if !errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), `as user "app" (or the password is wrong`) || !strings.Contains(err.Error(), "/locks/"+name) {
					t.Errorf("%s of %s: %v", what, name, err)
				}
			}
		}
		mustRelease(t, own)
		mustRelease(t, shared)
	})
}
