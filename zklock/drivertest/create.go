package drivertest

import (
	"bytes"

	"github.com/zklock/go-zklock/zklock/driver"
)

func createTests() []test {
	return []test{
		{"create/returns the path it was given", func(e *env) {
			s := e.connect()
			for mode, name := range map[driver.Mode]string{driver.Persistent: "p", driver.Ephemeral: "e"} {
				if got := e.create(s, e.path(name), nil, mode); got != e.path(name) {
					e.Fatalf("create of the %v node %s returned %q", mode, e.path(name), got)
				}
			}
		}},
		{"create/stores the data", func(e *env) {
			s := e.connect()
			binary := []byte{0, 1, 0xff, '/', '\n', 0x80}
			e.create(s, e.path("a"), binary, driver.Persistent)
			e.data(s, e.path("a"), string(binary))
			for name, empty := range map[string][]byte{"nil": nil, "empty": {}} {
				e.create(s, e.path(name), empty, driver.Persistent)
				e.data(s, e.path(name), "")
			}
		}},
		{"create/stores what the data was at the call", func(e *env) {
			s := e.connect()
			data := []byte("before")
			e.create(s, e.path("a"), data, driver.Persistent)
			copy(data, "after!")
			e.data(s, e.path("a"), "before")
		}},
		{"create/under a missing parent is ErrNoNode", func(e *env) {
			_, err := e.connect().Create(e.ctx, e.path("missing/a"), nil, driver.Persistent, everyone())
			e.is(err, driver.ErrNoNode, "create under a missing parent")
		}},
		{"create/over an existing node is ErrNodeExists and changes nothing", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), []byte("first"), driver.Persistent)
			for _, mode := range []driver.Mode{driver.Persistent, driver.Ephemeral} {
				_, err := s.Create(e.ctx, e.path("a"), []byte("second"), mode, everyone())
				e.is(err, driver.ErrNodeExists, "create over an existing node as "+mode.String())
			}
			e.data(s, e.path("a"), "first")
		}},
		{"create/under an ephemeral node is ErrNoChildrenForEphemerals", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Ephemeral)
			for _, mode := range []driver.Mode{driver.Persistent, driver.EphemeralSequential} {
				_, err := s.Create(e.ctx, e.path("a/b"), nil, mode, everyone())
				e.is(err, driver.ErrNoChildrenForEphemerals, "create under an ephemeral node as "+mode.String())
			}
		}},
		{"create/after a delete makes a new node", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), []byte("first"), driver.Persistent)
			e.set(s, e.path("a"), "changed")
			before := e.read(s, e.path("a")).Stat
			e.delete(s, e.path("a"))
			e.create(s, e.path("a"), []byte("second"), driver.Persistent)
			after := e.read(s, e.path("a"))
			if after.Stat.Version != 0 || after.Stat.Czxid <= before.Czxid || string(after.Data) != "second" {
				e.Fatalf("the new node has stat %+v and data %q; the deleted one had stat %+v", after.Stat, after.Data, before)
			}
		}},
	}
}

func deleteTests() []test {
	return []test{
		{"delete/removes the node", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.delete(s, e.path("a"))
			e.absent(s, e.path("a"))
			e.absent(other, e.path("a"))
		}},
		{"delete/with the right version removes the node", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			stat := e.set(s, e.path("a"), "x")
			e.ok(s.Delete(e.ctx, e.path("a"), stat.Version), "delete of the right version")
			e.absent(s, e.path("a"))
		}},
		{"delete/with another version is ErrBadVersion and removes nothing", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.set(s, e.path("a"), "x")
			for _, version := range []int32{0, 2, 100} {
				e.is(s.Delete(e.ctx, e.path("a"), version), driver.ErrBadVersion, "delete of another version")
			}
			e.data(s, e.path("a"), "x")
		}},
		{"delete/of a node with children is ErrNotEmpty", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.create(s, e.path("a/b"), nil, driver.Ephemeral)
			e.is(s.Delete(e.ctx, e.path("a"), driver.AnyVersion), driver.ErrNotEmpty, "delete of a parent")
			e.delete(s, e.path("a/b"))
			e.delete(s, e.path("a"))
		}},
		{"delete/of a missing node is ErrNoNode", func(e *env) {
			s := e.connect()
			for _, path := range []string{e.path("missing"), e.path("missing/too")} {
				e.is(s.Delete(e.ctx, path, driver.AnyVersion), driver.ErrNoNode, "delete of a missing node")
			}
		}},
	}
}

func getTests() []test {
	return []test{
		{"get/of a missing node is ErrNoNode", func(e *env) {
			_, err := e.connect().Get(e.ctx, e.path("missing"))
			e.is(err, driver.ErrNoNode, "get of a missing node")
		}},
		{"get/returns data that belongs to the caller", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), []byte("mine"), driver.Persistent)
			first := e.read(s, e.path("a")).Data
			copy(first, "your")
			e.data(s, e.path("a"), "mine")
		}},
		{"get/sees what the session has written", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			for _, data := range []string{"one", "two", ""} {
				stat := e.set(s, e.path("a"), data)
				node, err := s.Get(e.ctx, e.path("a"))
				e.ok(err, "get")
				if string(node.Data) != data || node.Stat != stat {
					e.Fatalf("get after a set of %q returned %q and stat %+v; the set returned %+v", data, node.Data, node.Stat, stat)
				}
			}
		}},
		{"get/sees what another session has written after a sync", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			for _, data := range []string{"one", "two", "three"} {
				e.set(s, e.path("a"), data)
				e.data(other, e.path("a"), data)
			}
		}},
		{"get/carries large data", func(e *env) {
			s := e.connect()
			large := bytes.Repeat([]byte("0123456789abcdef"), 512<<10/16)
			e.create(s, e.path("a"), large, driver.Persistent)
			if got := e.read(s, e.path("a")).Data; !bytes.Equal(got, large) {
				e.Fatalf("get of 512 KiB returned other data, of %d bytes", len(got))
			}
		}},
	}
}

func setTests() []test {
	return []test{
		{"set/with the right version replaces the data", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), []byte("zero"), driver.Persistent)
			for version := range int32(3) {
				stat, err := s.Set(e.ctx, e.path("a"), []byte("next"), version)
				e.ok(err, "set of the right version")
				if stat.Version != version+1 {
					e.Fatalf("after a set with version %d, the version is %d", version, stat.Version)
				}
			}
			e.data(s, e.path("a"), "next")
		}},
		{"set/with another version is ErrBadVersion and changes nothing", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), []byte("zero"), driver.Persistent)
			_, err := s.Set(e.ctx, e.path("a"), []byte("one"), 1)
			e.is(err, driver.ErrBadVersion, "set of another version")
			e.data(s, e.path("a"), "zero")
		}},
		{"set/of a missing node is ErrNoNode", func(e *env) {
			_, err := e.connect().Set(e.ctx, e.path("missing"), nil, driver.AnyVersion)
			e.is(err, driver.ErrNoNode, "set of a missing node")
		}},
		{"set/stores what the data was at the call", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			data := []byte("before")
			_, err := s.Set(e.ctx, e.path("a"), data, driver.AnyVersion)
			e.ok(err, "set")
			copy(data, "after!")
			e.data(s, e.path("a"), "before")
		}},
		{"set/to the same data is a change", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), []byte("x"), driver.Persistent)
			if stat := e.set(s, e.path("a"), "x"); stat.Version != 1 || stat.Mzxid <= stat.Czxid {
				e.Fatalf("after a set to the same data, the stat is %+v, want version 1 and a new mzxid", stat)
			}
		}},
	}
}

func childrenTests() []test {
	return []test{
		{"children/are names, not paths", func(e *env) {
			s := e.connect()
			for _, name := range []string{"b", "a", "c"} {
				e.create(s, e.path(name), nil, driver.Persistent)
				e.create(s, e.path(name)+"/below", nil, driver.Persistent)
			}
			if got := e.names(s, e.root); !equal(got, "a", "b", "c") {
				e.Fatalf("children are %q, want a, b and c", got)
			}
		}},
		{"children/of a leaf are none", func(e *env) {
			names, stat, err := e.connect().Children(e.ctx, e.root)
			e.ok(err, "children")
			if len(names) != 0 || stat.NumChildren != 0 {
				e.Fatalf("a node without children has the list %q and the count %d", names, stat.NumChildren)
			}
		}},
		{"children/of a missing node is ErrNoNode", func(e *env) {
			_, _, err := e.connect().Children(e.ctx, e.path("missing"))
			e.is(err, driver.ErrNoNode, "children of a missing node")
		}},
		{"children/come with the stat of the parent", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.set(s, e.root, "parent")
			_, stat, err := s.Children(e.ctx, e.root)
			e.ok(err, "children")
			if want := e.read(s, e.root).Stat; stat != want || stat.NumChildren != 1 {
				e.Fatalf("the list came with stat %+v, but the parent's stat is %+v", stat, want)
			}
		}},
		{"children/made and deleted by another session are seen after a sync", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(other, e.path("a"), nil, driver.Persistent)
			e.create(other, e.path("b"), nil, driver.Ephemeral)
			if got := e.names(s, e.root); !equal(got, "a", "b") {
				e.Fatalf("children are %q, want a and b", got)
			}
			e.delete(other, e.path("a"))
			if got := e.names(s, e.root); !equal(got, "b") {
				e.Fatalf("children are %q, want b", got)
			}
		}},
	}
}
