package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/faultcontrol"
	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// Revoke, SetLabel and Downgrade each read the data of a queue node and write it changed. If one of
// them writes between the read and the write of another, the node has both changes in the end.
func TestRevocationAndOtherWritersKeepEachOther(t *testing.T) {
	ops := map[string]func(ctx context.Context, l *zklock.Lock, c *zklock.Client, node string) error{
		"revoke": func(ctx context.Context, _ *zklock.Lock, c *zklock.Client, node string) error {
			return c.Revoke(ctx, "x", node, "r")
		},
		"label": func(ctx context.Context, l *zklock.Lock, _ *zklock.Client, _ string) error {
			return l.SetLabel(ctx, "l")
		},
		"downgrade": func(ctx context.Context, l *zklock.Lock, _ *zklock.Client, _ string) error { return l.Downgrade(ctx) },
	}
	for _, pair := range [][2]string{{"revoke", "label"}, {"label", "revoke"}, {"revoke", "downgrade"}, {"downgrade", "revoke"}} {
		t.Run(pair[0]+", interrupted by "+pair[1], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				var l *zklock.Lock
				var quiet *zklock.Client
				var node string
				sets := 0
				interfere := func(op faultdriver.Op) faultdriver.Fault {
					if op.Kind == faultdriver.Set && strings.Contains(op.Paths[0], "__WRIT__") {
						if sets++; sets == 1 { // after the read of the first operation
							if err := ops[pair[1]](context.Background(), l, quiet, node); err != nil {
								t.Error(err)
							}
						}
					}
					return faultdriver.None()
				}
				c := connect(t, faultcontrol.Control(e.Connector(), interfere), nil)
				quiet = connect(t, e.Connector(), nil)
				l = mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
				node = holder(t, quiet, "x").Node
				if err := ops[pair[0]](t.Context(), l, c, node); err != nil {
					t.Error(err)
				}
				if sets < 2 {
					t.Errorf("%d sets: no write came in between", sets)
				}
				want := holder(t, quiet, "x")
				if want.Revoked != "r" || pair[0]+pair[1] == "revokelabel" && want.Label != "l" || strings.Contains(pair[0]+pair[1], "downgrade") && want.Mode != zklock.Shared {
					t.Errorf("the contender is %+v", want)
				}
				if !revoked(l) {
					t.Error("the holder was not asked")
				}
				mustRelease(t, l)
			})
		})
	}
}

// A request whose reply is lost is made once.
func TestRevokeWithLostReplies(t *testing.T) {
	for name, fault := range map[string]faultdriver.Injector{
		"reply lost": faultdriver.Nth(1, faultdriver.LoseReply()), "request lost": faultdriver.Nth(1, faultdriver.Drop()),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				sets := faultdriver.If("a set of a queue node", func(op faultdriver.Op) bool {
					return op.Kind == faultdriver.Set && strings.Contains(op.Paths[0], "__WRIT__")
				}, fault)
				a, b := connect(t, e.Connector(), nil), connect(t, faultdriver.Wrap(e.Connector(), sets), nil)
				l := mustLock(t)(a.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
				if got := cost(e, func() { revoke(t, b, "x", "r") }).Sets; got != 1 {
					t.Errorf("%d sets were applied, want 1", got)
				}
				if !revoked(l) {
					t.Error("the holder was not asked")
				}
				mustRelease(t, l)
			})
		})
	}
}

// Revoke needs the right WRITE on the holder's node.
func TestRevokeNeedsWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.Named(t.Name())
		defer e.Close()
		as := func(user string) *zklock.Client { return open(t, "mem://"+user+"@"+t.Name()+"/locks?acl=creator") }
		operator := plain(t, e)
		if _, err := operator.Create(t.Context(), "/locks", nil, driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		right := as("app:s3cret")
		l := mustLock(t)(right.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
		err := as("other:s3cret").Revoke(t.Context(), "x", holder(t, right, "x").Node, "r")
		var failed *zklock.Error
		if !errors.Is(err, zklock.ErrNoAuth) || !strings.Contains(err.Error(), "/locks/x") || !errors.As(err, &failed) || failed.Op != "revoke" || revoked(l) {
			t.Errorf("%v, asked: %v", err, revoked(l))
		}
		mustRelease(t, l)
	})
}

// An operator whose server lags behind finds the node that it has been shown elsewhere.
func TestOperatorOnALaggingServer(t *testing.T) {
	for what, op := range map[string]func(c *zklock.Client, node string) error{
		"Revoke": func(c *zklock.Client, node string) error { return c.Revoke(context.Background(), "x", node, "r") },
		"Break":  func(c *zklock.Client, node string) error { return c.Break(context.Background(), "x", node) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithServers(3))
				defer e.Close()
				lagging := (e.Leader() + 1) % 3
				holder, operator := connect(t, e.Connector(e.Leader()), nil), connect(t, e.Connector(lagging), nil)
				for _, c := range []*zklock.Client{holder, operator} {
					if err := c.Ping(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				memcontrol.Of(e).Lag(lagging, 3*time.Second)
				defer memcontrol.Of(e).Lag(lagging, 0)
				l := mustLock(t)(holder.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
				synctest.Wait()
				queue, err := holder.Contenders(t.Context(), "x")
				if err != nil || len(queue) != 1 {
					t.Fatalf("%+v, %v", queue, err)
				}
				h := queue[0]
				if err := op(operator, fmt.Sprintf("%s@%#x", h.Node, h.Zxid)); err != nil {
					t.Error(err)
				}
				if synctest.Wait(); what == "Revoke" && !revoked(l) || what == "Break" && !errors.Is(l.Err(), zklock.ErrLost) {
					t.Errorf("asked: %v; the lock: %v", revoked(l), l.Err())
				}
			})
		})
	}
}

// Curator's Revoker writes its message over all data of a node, and its holders look for exactly
// that message. Other libraries cannot be asked.
func TestRevocationWithCurator(t *testing.T) {
	for _, c := range []struct{ dialect, node, data, want string }{
		{"curator", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-", "10.0.0.7", "__REVOKE__"},
		{"curator", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-", `{"mode":"x"}`, "__REVOKE__"},
		{"zk", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-", "10.0.0.7", "__REVOKE__"},
		{"zklock", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__", "10.0.0.7", "__REVOKE__"},
		{"zklock", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__READ__", "", "__REVOKE__"},
		{"zklock", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-", "", "__REVOKE__"},
		{"zk", "_c_1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed-lock-", "theirs", ""},
		{"kazoo", "1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__lock__", "theirs", ""},
	} {
		t.Run(c.dialect+" "+c.node, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				ours, theirs := inDialect(t, e.Connector(), c.dialect), newForeignSession(t, e)
				use(t, ours.Mutex("x")) // creates the znodes
				path := theirs.create(ours.Mutex("x").Path()+"/"+c.node, c.data, driver.EphemeralSequential)
				err := ours.Revoke(t.Context(), "x", path[strings.LastIndexByte(path, '/')+1:], "r")
				switch got := theirs.data(path); {
				case c.want == "" && (!errors.Is(err, zklock.ErrConflict) || got != c.data):
					t.Errorf("%v, and the data is %q; want ErrConflict and no change", err, got)
				case c.want != "" && (err != nil || got != c.want):
					t.Errorf("%v, and the data is %q, want %q", err, got, c.want)
				}
				found, err := ours.Contenders(t.Context(), "x")
				if err != nil || len(found) != 1 || !found[0].Foreign {
					t.Errorf("%+v, %v", found, err)
				}
			})
		})
	}
	for _, dialect := range []string{"curator", "zklock"} {
		t.Run("of a "+dialect+" holder", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				ours, theirs := inDialect(t, e.Connector(), dialect), newForeignSession(t, e)
				l := mustLock(t)(ours.Mutex("x").Acquire(t.Context(), zklock.WithRevocable()))
				h := holder(t, ours, "x")
				if _, err := theirs.Set(t.Context(), ours.Mutex("x").Path()+"/"+h.Node, []byte("__REVOKE__"), driver.AnyVersion); err != nil {
					t.Fatal(err)
				}
				if !revoked(l) || l.Err() != nil {
					t.Errorf("asked: %v; the lock: %v", revoked(l), l.Err())
				}
				if err := l.SetLabel(t.Context(), "l"); err != nil {
					t.Error(err)
				}
				if got := holder(t, ours, "x"); got.Revoked != "__REVOKE__" || got.Foreign || got.Label != "l" {
					t.Errorf("the contender is %+v", got)
				}
				mustRelease(t, l)
			})
		})
	}
}
