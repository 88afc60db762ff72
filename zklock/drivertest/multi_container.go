package drivertest

import (
	"errors"

	"github.com/zklock/go-zklock/zklock/driver"
)

// container returns an operation that creates a container with data.
func container(path string) driver.Op {
	return driver.CreateOp(path, []byte("data"), driver.Container, everyone())
}

// canMake reports whether containers can be created in a transaction. A driver or server
// that cannot must refuse the whole transaction, with the right error.
func (e *env) canMake(s driver.Session) bool {
	e.Helper()
	before := e.read(s, e.root).Stat
	results, err := s.Multi(e.ctx, []driver.Op{persistent(e.path("plain")), container(e.path("made"))})
	if err == nil {
		e.multi(s, driver.DeleteOp(e.path("plain"), 0), driver.DeleteOp(e.path("made"), 0))
		return true
	}
	if errors.Is(err, driver.ErrBadArguments) {
		e.is(err, driver.ErrBadArguments, "multi with a container")
	} else {
		e.is(err, driver.ErrUnimplemented, "multi with a container")
		if len(results) != 2 {
			e.Fatalf("a refused multi of two operations has %d results", len(results))
		}
		e.is(results[0].Err, driver.ErrRolledBack, "the result of another operation")
		e.is(results[1].Err, driver.ErrUnimplemented, "the result of the container")
	}
	if after := e.read(s, e.root).Stat; after != before {
		e.Fatalf("a refused multi changed its parent from %+v to %+v", before, after)
	}
	return false
}

// maker opens a session for a test on containers in transactions. It skips the test if they
// cannot be created there.
func (e *env) maker() driver.Session {
	e.Helper()
	s := e.connect()
	if !e.canMake(s) {
		e.skip("the driver or the server cannot create a container in a transaction")
	}
	return s
}

func multiContainerTests() []test {
	return []test{
		{"multi/with a container is applied, or refused as a whole", func(e *env) { e.canMake(e.connect()) }},
		{"multi/results of containers have the path and the transaction's zxid", func(e *env) {
			s, other := e.maker(), e.connect()
			e.create(s, e.path("other"), nil, driver.Persistent)
			stop := e.busy(other, e.path("other"))
			defer stop()
			for _, name := range []string{"a", "b", "c"} {
				path := e.path(name)
				results := e.multi(s, container(path),
					driver.CreateOp(path+"/n-", nil, driver.EphemeralSequential, everyone()),
					container(path+"/below"),
					driver.SetOp(path, []byte("set"), 0),
					driver.CheckOp(path, 1))
				made, child, below := e.read(s, path), e.read(s, results[1].Path), e.read(s, path+"/below")
				if results[0].Path != path || results[2].Path != path+"/below" || e.suffix(results[1].Path, path+"/n-") != 0 {
					e.Fatalf("the paths of the results are %q, %q and %q", results[0].Path, results[1].Path, results[2].Path)
				}
				for i, r := range results {
					if r.Zxid == 0 || r.Zxid != made.Stat.Czxid || r.Zxid != child.Stat.Czxid || r.Zxid != below.Stat.Czxid {
						e.Fatalf("result %d has zxid %#x; the container has the stat %+v, its children %+v and %+v", i, r.Zxid, made.Stat, child.Stat, below.Stat)
					}
				}
				if stat := results[3].Stat; stat != made.Stat || stat.NumChildren != 2 || stat.Version != 1 || made.Stat.EphemeralOwner != 0 {
					e.Fatalf("the set's result has the stat %+v, and the container has %+v", stat, made.Stat)
				}
				if string(made.Data) != "set" || string(below.Data) != "data" {
					e.Fatalf("the containers have the data %q and %q", made.Data, below.Data)
				}
			}
		}},
		{"multi/of one container creates it", func(e *env) {
			s := e.maker()
			r := e.multi(s, container(e.path("a")))[0]
			if n := e.read(s, e.path("a")); r.Path != e.path("a") || r.Zxid != n.Stat.Czxid || string(n.Data) != "data" {
				e.Fatalf("the result is %+v, and the container has data %q and stat %+v", r, n.Data, n.Stat)
			}
			results, err := s.Multi(e.ctx, []driver.Op{container(e.path("a"))})
			e.is(err, driver.ErrNodeExists, "a second create")
			if len(results) != 1 || !errors.Is(results[0].Err, driver.ErrNodeExists) {
				e.Fatalf("the results of a second create are %+v", results)
			}
		}},
		{"multi/with a container that exists is ErrNodeExists and applies nothing", func(e *env) {
			s := e.maker()
			e.create(s, e.path("container"), nil, driver.Container)
			e.create(s, e.path("persistent"), nil, driver.Persistent)
			for _, path := range []string{e.path("container"), e.path("persistent")} {
				e.rolledBack(s, 0, driver.ErrNodeExists, container(path), driver.CreateOp(path+"/n-", nil, driver.EphemeralSequential, everyone()), persistent(e.path("a")))
				e.rolledBack(s, 2, driver.ErrNodeExists, persistent(e.path("a")), container(e.path("b")), container(path))
				if got := e.names(s, path); len(got) != 0 {
					e.Fatalf("a refused multi created %q", got)
				}
			}
			e.rolledBack(s, 1, driver.ErrNoNode, persistent(e.path("a")), container(e.path("missing/c")), container(e.path("b")))
		}},
		{"multi/containers are rolled back", func(e *env) {
			s := e.maker()
			e.rolledBack(s, 3, driver.ErrNoNode, container(e.path("a")), persistent(e.path("a/child")), container(e.path("b")), driver.DeleteOp(e.path("missing"), driver.AnyVersion))
			e.multi(s, container(e.path("a"))) // it left no trace
		}},
	}
}
