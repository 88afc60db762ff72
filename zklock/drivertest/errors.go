package drivertest

import (
	"errors"

	"github.com/zklock/go-zklock/zklock/driver"
)

// tooLarge is a size, in bytes, that is more than a server accepts in one request.
const tooLarge = 1<<20 + 64<<10

func errorTests() []test {
	return []test{
		{"errors/for a malformed path are ErrBadArguments", func(e *env) {
			s := e.connect()
			for _, path := range []string{"", "relative", e.root + "/", e.root + "//a", e.root + "/./a", e.root + "/../a", e.root + "/a\x00b"} {
				what := "with path " + path
				_, err := s.Create(e.ctx, path, nil, driver.Persistent, everyone())
				e.is(err, driver.ErrBadArguments, "create "+what)
				_, err = s.Get(e.ctx, path)
				e.is(err, driver.ErrBadArguments, "get "+what)
				_, err = s.Set(e.ctx, path, nil, driver.AnyVersion)
				e.is(err, driver.ErrBadArguments, "set "+what)
				e.is(s.Delete(e.ctx, path, driver.AnyVersion), driver.ErrBadArguments, "delete "+what)
				_, _, err = s.Children(e.ctx, path)
				e.is(err, driver.ErrBadArguments, "children "+what)
				_, _, err = s.Watch(e.ctx, path)
				e.is(err, driver.ErrBadArguments, "watch "+what)
				_, err = s.Multi(e.ctx, []driver.Op{persistent(path)})
				e.is(err, driver.ErrBadArguments, "multi "+what)
			}
			e.set(s, e.root, "the session works on")
		}},
		{"errors/for data above the limit are ErrTooLarge and cost no connection", func(e *env) {
			s := e.connect()
			large := make([]byte, tooLarge)
			_, err := s.Create(e.ctx, e.path("a"), large, driver.Persistent, everyone())
			e.is(err, driver.ErrTooLarge, "create")
			_, err = s.Set(e.ctx, e.root, large, driver.AnyVersion)
			e.is(err, driver.ErrTooLarge, "set")
			e.absent(s, e.path("a"))
			e.data(s, e.root, "")
			if generation, _ := s.Conn(); generation != 1 {
				e.Fatalf("the connection was lost by a request that should not have been sent; it is now number %d", generation)
			}
		}},
		{"errors/for a multi above the limit are ErrTooLarge", func(e *env) {
			s := e.connect()
			half := make([]byte, tooLarge/2)
			_, err := s.Multi(e.ctx, []driver.Op{
				driver.CreateOp(e.path("a"), half, driver.Persistent, everyone()),
				driver.CreateOp(e.path("b"), half, driver.Persistent, everyone()),
			})
			e.is(err, driver.ErrTooLarge, "multi")
			e.absent(s, e.path("a"))
			if generation, _ := s.Conn(); generation != 1 {
				e.Fatalf("the connection was lost by a request that should not have been sent; it is now number %d", generation)
			}
		}},
		{"errors/do not end the session", func(e *env) {
			s := e.connect()
			for range 3 {
				_, err := s.Get(e.ctx, e.path("missing"))
				e.is(err, driver.ErrNoNode, "get")
				_, err = s.Multi(e.ctx, []driver.Op{driver.CheckOp(e.path("missing"), 0)})
				e.is(err, driver.ErrNoNode, "multi")
			}
			state, _ := s.State()
			if generation, _ := s.Conn(); state != driver.Connected || generation != 1 {
				e.Fatalf("after definite errors the session is %v on connection %d, want connected on connection 1", state, generation)
			}
		}},
	}
}

// mine returns an access list that grants all permissions to the creator.
func mine() []driver.ACL { return driver.CreatorACL(driver.PermAll) }

func aclTests() []test {
	return []test{
		{"acl/for the creator is ErrInvalidACL for a session without an identity", func(e *env) {
			s := e.connect()
			_, err := s.Create(e.ctx, e.path("a"), nil, driver.Persistent, mine())
			e.is(err, driver.ErrInvalidACL, "create")
			_, err = s.Multi(e.ctx, []driver.Op{driver.CreateOp(e.path("a"), nil, driver.Persistent, mine())})
			e.is(err, driver.ErrInvalidACL, "multi")
			e.absent(s, e.path("a"))
		}},
		{"acl/that is empty is ErrInvalidACL", func(e *env) {
			s := e.connect()
			for _, acl := range [][]driver.ACL{nil, {}} {
				_, err := s.Create(e.ctx, e.path("a"), nil, driver.Persistent, acl)
				e.is(err, driver.ErrInvalidACL, "create")
			}
			e.absent(s, e.path("a"))
		}},
		{"acl/that only allows reading is ErrNoAuth for writes", func(e *env) {
			s := e.connect()
			_, err := s.Create(e.ctx, e.path("a"), []byte("x"), driver.Persistent, driver.OpenACL(driver.PermRead))
			e.ok(err, "create")
			e.data(s, e.path("a"), "x")
			_, err = s.Set(e.ctx, e.path("a"), nil, driver.AnyVersion)
			e.is(err, driver.ErrNoAuth, "set")
			_, err = s.Create(e.ctx, e.path("a/b"), nil, driver.Persistent, everyone())
			e.is(err, driver.ErrNoAuth, "create below")
		}},
		{"acl/for the creator lets its sessions do everything", func(e *env) {
			s, again := e.connectAuthenticated(), e.connectAuthenticated()
			_, err := s.Create(e.ctx, e.path("a"), []byte("x"), driver.Persistent, mine())
			e.ok(err, "create")
			for _, by := range []driver.Session{s, again} {
				e.data(by, e.path("a"), "x")
				e.set(by, e.path("a"), "x")
				path, err := by.Create(e.ctx, e.path("a/n-"), nil, driver.EphemeralSequential, mine())
				e.ok(err, "create below")
				e.multi(by, driver.CheckOp(e.path("a"), driver.AnyVersion), driver.DeleteOp(path, driver.AnyVersion))
			}
		}},
		{"acl/for the creator is ErrNoAuth for sessions without its identity", func(e *env) {
			owner, s := e.connectAuthenticated(), e.connect()
			for _, path := range []string{e.path("a"), e.path("a/old")} {
				_, err := owner.Create(e.ctx, path, []byte("x"), driver.Persistent, mine())
				e.ok(err, "create "+path)
			}
			for _, c := range calls(e.path("a")) {
				if c.name != "sync" && c.name != "watch exists" { // these need no permission
					e.is(c.do(e.ctx, s), driver.ErrNoAuth, c.name)
				}
			}
			for _, op := range []driver.Op{
				persistent(e.path("a/new")),
				driver.SetOp(e.path("a"), nil, driver.AnyVersion),
				driver.CheckOp(e.path("a"), driver.AnyVersion),
				driver.DeleteOp(e.path("a/old"), driver.AnyVersion),
			} {
				_, err := s.Multi(e.ctx, []driver.Op{persistent(e.path("b")), op})
				e.is(err, driver.ErrNoAuth, "multi with "+op.Kind.String())
			}
			e.absent(s, e.path("b"))
			if got := e.names(owner, e.path("a")); !equal(got, "old") {
				e.Fatalf("after requests without permission, the children are %q, want them unchanged", got)
			}
			e.data(owner, e.path("a"), "x")
		}},
		{"acl/of the parent decides on deletion, not the node's own", func(e *env) {
			owner, s := e.connectAuthenticated(), e.connect()
			_, err := owner.Create(e.ctx, e.path("a"), nil, driver.Persistent, mine())
			e.ok(err, "create")
			e.delete(s, e.path("a"))
			e.absent(owner, e.path("a"))
		}},
		{"acl/for the creator still works for it after a reconnect", func(e *env) {
			owner := e.connectAuthenticated()
			_, err := owner.Create(e.ctx, e.path("a"), []byte("x"), driver.Persistent, mine())
			e.ok(err, "create")
			e.h.Kill(owner)
			e.reconnects(owner, 2)
			e.data(owner, e.path("a"), "x")
		}},
	}
}

// inFlight reports whether err is a valid outcome of a request whose connection was lost during
// the call: success, an unknown outcome, or not sent. Any other error claims more than the
// driver can know.
func inFlight(err error) bool {
	return err == nil || errors.Is(err, driver.ErrConnLoss) || errors.Is(err, driver.ErrNotSent)
}
