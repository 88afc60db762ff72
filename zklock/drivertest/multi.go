package drivertest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/zklock/go-zklock/zklock/driver"
)

// persistent returns an operation that creates a persistent znode.
func persistent(path string) driver.Op {
	return driver.CreateOp(path, nil, driver.Persistent, everyone())
}

// rolledBack submits ops, and checks that the one at index fault fails with want, that the
// results say so, and that nothing was applied: e.path("a") and e.path("b") must not exist, and
// the root must be unchanged.
func (e *env) rolledBack(s driver.Session, fault int, want error, ops ...driver.Op) {
	e.Helper()
	before := e.read(s, e.root).Stat
	results, err := s.Multi(e.ctx, ops)
	e.is(err, want, "multi")
	if len(results) != len(ops) {
		e.Fatalf("a failed multi of %d operations has %d results", len(ops), len(results))
	}
	for i, r := range results {
		want := want
		if i != fault {
			want = driver.ErrRolledBack
		}
		e.is(r.Err, want, fmt.Sprintf("result %d of a multi that failed at %d", i, fault))
	}
	if after := e.read(s, e.root).Stat; after != before {
		e.Fatalf("a failed multi changed its parent from %+v to %+v", before, after)
	}
	e.absent(s, e.path("a"))
	e.absent(s, e.path("b"))
}

func multiTests() []test {
	return []test{
		{"multi/applies all operations in order", func(e *env) {
			s := e.connect()
			e.create(s, e.path("old"), nil, driver.Persistent)
			e.multi(s,
				driver.DeleteOp(e.path("old"), 0),
				persistent(e.path("new")),
				persistent(e.path("new/child")),
				driver.SetOp(e.path("new"), []byte("x"), 0),
				driver.DeleteOp(e.path("new/child"), driver.AnyVersion),
				driver.CheckOp(e.path("new"), 1))
			e.absent(s, e.path("old"))
			e.absent(s, e.path("new/child"))
			e.data(s, e.path("new"), "x")
		}},
		{"multi/does not change its arguments", func(e *env) {
			s := e.connect()
			ops := []driver.Op{
				driver.CreateOp(e.path("a"), []byte("data"), driver.Persistent, driver.OpenACL(driver.PermAll)),
				driver.CreateOp(e.path("b"), nil, driver.Persistent, driver.CreatorACL(driver.PermAll)), // refused for a session without an identity
				driver.SetOp(e.path("a"), []byte("other"), driver.AnyVersion),
			}
			given := slices.Clone(ops)
			for i := range given {
				given[i].Data, given[i].ACL = slices.Clone(ops[i].Data), slices.Clone(ops[i].ACL)
			}
			for _, part := range [][]driver.Op{ops, {ops[0], ops[2]}} {
				_, _ = s.Multi(e.ctx, part)
			}
			if !reflect.DeepEqual(ops, given) {
				e.Fatalf("a multi changed its operations to %+v, from %+v", ops, given)
			}
		}},
		{"multi/has one zxid for all its operations", func(e *env) {
			s := e.connect()
			results := e.multi(s, persistent(e.path("a")), persistent(e.path("b")), driver.SetOp(e.root, nil, driver.AnyVersion))
			a, b, set := e.read(s, e.path("a")).Stat, e.read(s, e.path("b")).Stat, results[2].Stat
			if a.Czxid != b.Czxid || set.Mzxid != a.Czxid || set.Pzxid != a.Czxid {
				e.Fatalf("the zxids of one multi differ: creates %#x and %#x, mzxid of the set %#x, its pzxid %#x", a.Czxid, b.Czxid, set.Mzxid, set.Pzxid)
			}
		}},
		{"multi/results carry the transaction's zxid while other sessions write", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("n"), nil, driver.Persistent)
			e.create(s, e.path("other"), nil, driver.Persistent)
			stop := e.busy(other, e.path("other"))
			defer stop()
			check := func(what string, results []driver.OpResult, path string, of func(driver.Stat) int64) {
				e.Helper()
				for i, r := range results {
					if want := of(e.read(s, path).Stat); r.Zxid != want || want == 0 {
						e.Fatalf("%s: result %d of %d has zxid %#x, and the znode has %#x", what, i, len(results), r.Zxid, want)
					}
				}
			}
			created := func(stat driver.Stat) int64 { return stat.Czxid }
			changed := func(stat driver.Stat) int64 { return stat.Mzxid }
			for range 50 {
				one := e.multi(s, driver.CreateOp(e.path("c-"), nil, driver.EphemeralSequential, everyone()))
				check("a create", one, one[0].Path, created)
				two := e.multi(s, driver.DeleteOp(one[0].Path, driver.AnyVersion), driver.CreateOp(e.path("c-"), nil, driver.EphemeralSequential, everyone()))
				check("a delete and a create", two, two[1].Path, created)
				check("a set", e.multi(s, driver.SetOp(e.path("n"), []byte("x"), driver.AnyVersion)), e.path("n"), changed)
				three := e.multi(s, driver.DeleteOp(two[1].Path, driver.AnyVersion), driver.CheckOp(e.path("n"), driver.AnyVersion), driver.SetOp(e.path("n"), nil, driver.AnyVersion))
				check("a delete, a check and a set", three, e.path("n"), changed)
				if before := three[2].Zxid; e.multi(s, persistent(e.path("p")))[0].Zxid <= before || e.multi(s, driver.DeleteOp(e.path("p"), driver.AnyVersion))[0].Zxid <= before+1 {
					e.Fatal("the zxids of successive transactions do not grow")
				}
			}
		}},
		{"multi/a single operation fails as its own request does", func(e *env) {
			s := e.connect()
			e.create(s, e.path("n"), nil, driver.Persistent)
			e.create(s, e.path("n/child"), nil, driver.Persistent)
			for _, test := range []struct {
				op   driver.Op
				want error
			}{
				{persistent(e.path("n")), driver.ErrNodeExists},
				{persistent(e.path("missing/child")), driver.ErrNoNode},
				{driver.DeleteOp(e.path("n"), driver.AnyVersion), driver.ErrNotEmpty},
				{driver.DeleteOp(e.path("missing"), driver.AnyVersion), driver.ErrNoNode},
				{driver.DeleteOp(e.path("n/child"), 7), driver.ErrBadVersion},
				{driver.SetOp(e.path("n"), nil, 7), driver.ErrBadVersion},
				{driver.SetOp(e.path("missing"), nil, driver.AnyVersion), driver.ErrNoNode},
				{driver.CheckOp(e.path("n"), 7), driver.ErrBadVersion},
			} {
				results, err := s.Multi(e.ctx, []driver.Op{test.op})
				what := fmt.Sprintf("multi of one %v of %s", test.op.Kind, test.op.Path)
				e.is(err, test.want, what)
				if len(results) != 1 {
					e.Fatalf("%s: %d results, want one", what, len(results))
				}
				e.is(results[0].Err, test.want, "the result of a "+what)
				if results[0].Zxid != 0 {
					e.Fatalf("%s was refused, and its result has the zxid %#x", what, results[0].Zxid)
				}
			}
		}},
		{"multi/results carry the created path and the stat that was set", func(e *env) {
			s := e.connect()
			e.create(s, e.path("n"), nil, driver.Persistent)
			results := e.multi(s,
				persistent(e.path("a")),
				driver.CreateOp(e.path("s-"), []byte("seq"), driver.EphemeralSequential, everyone()),
				driver.SetOp(e.path("n"), []byte("data"), 0),
				driver.CheckOp(e.path("n"), 1))
			if results[0].Path != e.path("a") {
				e.Fatalf("the create's result has the path %q, want %q", results[0].Path, e.path("a"))
			}
			e.suffix(results[1].Path, e.path("s-"))
			made := e.read(s, results[1].Path)
			if string(made.Data) != "seq" || made.Stat.EphemeralOwner != s.ID() {
				e.Fatalf("%s has data %q and stat %+v, want data \"seq\" and owner %#x", results[1].Path, made.Data, made.Stat, s.ID())
			}
			if got := e.read(s, e.path("n")); results[2].Stat != got.Stat || string(got.Data) != "data" {
				e.Fatalf("the set's result has stat %+v, but the node is %+v", results[2].Stat, got)
			}
		}},
		{"multi/set after create counts the new node and has its zxid", func(e *env) {
			s, other := e.connect(), e.connect()
			for want := range int32(3) {
				by := s
				if want%2 == 1 {
					by = other
				}
				results := e.multi(by,
					driver.CreateOp(e.path("n-"), nil, driver.EphemeralSequential, everyone()),
					driver.SetOp(e.root, []byte("x"), driver.AnyVersion))
				stat, child := results[1].Stat, e.read(by, results[0].Path).Stat
				if stat.NumChildren != want+1 || stat.Mzxid != child.Czxid {
					e.Fatalf("the set after create %d has stat %+v, want %d children and the zxid of the new child, which is %+v", want, stat, want+1, child)
				}
			}
		}},
		{"multi/set before create does not count the new node", func(e *env) {
			s := e.connect()
			for want := range int32(3) {
				results := e.multi(s,
					driver.SetOp(e.root, []byte("x"), driver.AnyVersion),
					driver.CreateOp(e.path("n-"), nil, driver.EphemeralSequential, everyone()))
				if got := results[0].Stat.NumChildren; got != want {
					e.Fatalf("the set before the create counts %d children, want %d", got, want)
				}
			}
		}},
		{"multi/set after delete does not count the deleted node", func(e *env) {
			s := e.connect()
			e.create(s, e.path("old"), nil, driver.Ephemeral)
			results := e.multi(s, driver.DeleteOp(e.path("old"), 0), driver.SetOp(e.root, nil, driver.AnyVersion))
			if got := results[1].Stat.NumChildren; got != 0 {
				e.Fatalf("the set after the delete counts %d children, want 0", got)
			}
		}},
		{"multi/replaces a sequential node in one step", func(e *env) {
			s := e.connect()
			old := e.create(s, e.path("n-"), nil, driver.EphemeralSequential)
			results := e.multi(s,
				driver.DeleteOp(old, driver.AnyVersion),
				driver.CreateOp(e.path("n-"), nil, driver.EphemeralSequential, everyone()),
				driver.SetOp(e.root, nil, driver.AnyVersion))
			if e.suffix(results[1].Path, e.path("n-")) != 1 || results[2].Stat.NumChildren != 1 {
				e.Fatalf("the new node is %s, of %d children; want suffix 1 and one child", results[1].Path, results[2].Stat.NumChildren)
			}
		}},
		{"multi/creates of one multi get different suffixes", func(e *env) {
			s := e.connect()
			op := driver.CreateOp(e.path("n-"), nil, driver.EphemeralSequential, everyone())
			for want, r := range e.multi(s, op, op, op) {
				if got := e.suffix(r.Path, e.path("n-")); got != want {
					e.Fatalf("create %d got suffix %d, want %d", want, got, want)
				}
			}
		}},
		{"multi/sets of one node see each other", func(e *env) {
			s := e.connect()
			e.create(s, e.path("n"), nil, driver.Persistent)
			results := e.multi(s,
				driver.SetOp(e.path("n"), []byte("1"), 0),
				driver.SetOp(e.path("n"), []byte("22"), 1))
			for i, r := range results {
				if r.Stat.Version != int32(i+1) || r.Stat.DataLength != int32(i+1) {
					e.Fatalf("the stat of set %d is %+v, want version and length %d", i, r.Stat, i+1)
				}
			}
		}},
		{"multi/failing at its last operation applies nothing", func(e *env) {
			s := e.connect()
			e.rolledBack(s, 2, driver.ErrNoNode,
				persistent(e.path("a")), driver.SetOp(e.root, []byte("x"), driver.AnyVersion), driver.DeleteOp(e.path("missing"), driver.AnyVersion))
		}},
		{"multi/failing at its first operation applies nothing", func(e *env) {
			s := e.connect()
			e.rolledBack(s, 0, driver.ErrNoNode,
				driver.SetOp(e.path("missing"), nil, driver.AnyVersion), persistent(e.path("a")), persistent(e.path("b")))
		}},
		{"multi/failing in the middle applies nothing", func(e *env) {
			s := e.connect()
			e.create(s, e.path("c"), nil, driver.Persistent)
			e.rolledBack(s, 1, driver.ErrNodeExists, persistent(e.path("a")), persistent(e.path("c")), persistent(e.path("b")))
		}},
		{"multi/fails with the sentinel of the operation at fault", func(e *env) {
			s := e.connect()
			e.create(s, e.path("full"), nil, driver.Persistent)
			e.create(s, e.path("full/child"), nil, driver.Persistent)
			e.create(s, e.path("brief"), nil, driver.Ephemeral)
			for _, c := range []struct {
				op   driver.Op
				want error
			}{
				{persistent(e.path("missing/x")), driver.ErrNoNode},
				{persistent(e.path("full")), driver.ErrNodeExists},
				{persistent(e.path("brief/x")), driver.ErrNoChildrenForEphemerals},
				{driver.DeleteOp(e.path("full"), driver.AnyVersion), driver.ErrNotEmpty},
				{driver.DeleteOp(e.path("full/child"), 3), driver.ErrBadVersion},
				{driver.DeleteOp(e.path("missing"), driver.AnyVersion), driver.ErrNoNode},
				{driver.SetOp(e.path("full"), nil, 3), driver.ErrBadVersion},
				{driver.SetOp(e.path("missing"), nil, driver.AnyVersion), driver.ErrNoNode},
			} {
				e.rolledBack(s, 1, c.want, persistent(e.path("a")), c.op, persistent(e.path("b")))
			}
		}},
		{"multi/check of the right version passes", func(e *env) {
			s := e.connect()
			e.set(s, e.root, "x")
			before := e.read(s, e.root).Stat
			e.multi(s, driver.CheckOp(e.root, 1))
			e.multi(s, driver.CheckOp(e.root, driver.AnyVersion), persistent(e.path("a")))
			if after := e.read(s, e.root).Stat; after.Version != before.Version || after.Mzxid != before.Mzxid {
				e.Fatalf("a check changed the stat from %+v to %+v", before, after)
			}
		}},
		{"multi/check of another version is ErrBadVersion", func(e *env) {
			s := e.connect()
			e.rolledBack(s, 0, driver.ErrBadVersion, driver.CheckOp(e.root, 1), persistent(e.path("a")))
			e.rolledBack(s, 1, driver.ErrBadVersion, persistent(e.path("a")), driver.CheckOp(e.root, 7))
		}},
		{"multi/check of a missing node is ErrNoNode", func(e *env) {
			s := e.connect()
			e.rolledBack(s, 0, driver.ErrNoNode, driver.CheckOp(e.path("missing"), driver.AnyVersion), persistent(e.path("a")))
		}},
		{"multi/check fails once another session has deleted the node", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("lock"), nil, driver.Ephemeral)
			e.multi(s, driver.CheckOp(e.path("lock"), driver.AnyVersion), driver.SetOp(e.root, []byte("held"), driver.AnyVersion))
			e.delete(other, e.path("lock"))
			e.rolledBack(s, 0, driver.ErrNoNode,
				driver.CheckOp(e.path("lock"), driver.AnyVersion), driver.SetOp(e.root, []byte("late"), driver.AnyVersion))
			e.data(other, e.root, "held")
		}},
		{"multi/of many operations is applied as a whole", func(e *env) {
			s := e.connect()
			var ops []driver.Op
			for i := range 256 {
				ops = append(ops, driver.CreateOp(e.path(fmt.Sprintf("n%d-", i)), nil, driver.EphemeralSequential, everyone()))
			}
			results := e.multi(s, append(ops, driver.SetOp(e.root, nil, driver.AnyVersion))...)
			if got := results[256].Stat.NumChildren; got != 256 {
				e.Fatalf("the set after 256 creates counts %d children", got)
			}
		}},
		{"multi/of concurrent sessions is never applied in part", func(e *env) {
			// Both sessions move one node between two names. If their transactions were
			// mixed, none would be left, or two.
			s, other := e.connect(), e.connect()
			e.create(s, e.path("x"), nil, driver.Persistent)
			done := make(chan error, 2)
			move := func(by driver.Session, from, to string) {
				for range 20 {
					_, err := by.Multi(e.ctx, []driver.Op{driver.DeleteOp(e.path(from), driver.AnyVersion), persistent(e.path(to))})
					if err != nil && !errors.Is(err, driver.ErrNoNode) {
						done <- err
						return
					}
				}
				done <- nil
			}
			go move(s, "x", "y")
			go move(other, "y", "x")
			e.ok(errors.Join(recv(e, done, "one session"), recv(e, done, "the other session")), "moves")
			if got := e.names(e.connect(), e.root); len(got) != 1 {
				e.Fatalf("one node was moved, and now there are %q", got)
			}
		}},
	}
}
