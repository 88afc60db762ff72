package drivertest

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

func equal(got []string, want ...string) bool { return slices.Equal(got, want) }

func statTests() []test {
	return []test{
		{"stat/of a new node has one zxid, no versions and its data's length", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), []byte("four"), driver.Persistent)
			got := e.read(s, e.path("a")).Stat
			want := driver.Stat{Czxid: got.Czxid, Mzxid: got.Czxid, Pzxid: got.Czxid, Ctime: got.Ctime, Mtime: got.Ctime, DataLength: 4}
			if got != want || got.Czxid <= 0 {
				e.Fatalf("stat = %+v, want %+v", got, want)
			}
			// The leader's clock may differ from this machine's: this checks the unit only.
			if away := time.Since(time.UnixMilli(got.Ctime)).Abs(); away > 24*time.Hour {
				e.Fatalf("ctime is %d, which is %v from now if it is in milliseconds since the Unix epoch", got.Ctime, away)
			}
		}},
		{"stat/after a set has a new mzxid, version and length, and nothing else new", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			before := e.read(s, e.path("a")).Stat
			got := e.set(s, e.path("a"), "seven77")
			want := before
			want.Mzxid, want.Mtime, want.Version, want.DataLength = got.Mzxid, got.Mtime, 1, 7
			if got != want || got.Mzxid <= before.Mzxid || got.Mtime < before.Mtime {
				e.Fatalf("stat = %+v, before the set it was %+v", got, before)
			}
		}},
		{"stat/of a parent counts its children and their changes", func(e *env) {
			s := e.connect()
			before := e.read(s, e.root).Stat
			e.create(s, e.path("a"), nil, driver.Persistent)
			e.create(s, e.path("b"), nil, driver.Ephemeral)
			created, child := e.read(s, e.root).Stat, e.read(s, e.path("b")).Stat
			want := before
			want.Pzxid, want.Cversion, want.NumChildren = child.Czxid, 2, 2
			if created != want {
				e.Fatalf("stat after two creates = %+v, want %+v", created, want)
			}
			e.delete(s, e.path("a"))
			deleted := e.read(s, e.root).Stat
			want.Pzxid, want.Cversion, want.NumChildren = deleted.Pzxid, 3, 1
			if deleted != want || deleted.Pzxid <= created.Pzxid {
				e.Fatalf("stat after a delete = %+v, want %+v", deleted, want)
			}
		}},
		{"stat/of a parent does not change with its child's data or grandchildren", func(e *env) {
			s := e.connect()
			e.create(s, e.path("a"), nil, driver.Persistent)
			before := e.read(s, e.root).Stat
			e.set(s, e.path("a"), "x")
			e.create(s, e.path("a/b"), nil, driver.Persistent)
			if after := e.read(s, e.root).Stat; after != before {
				e.Fatalf("stat = %+v, before these changes it was %+v", after, before)
			}
		}},
		{"stat/of an ephemeral node names its session", func(e *env) {
			s, other := e.connect(), e.connect()
			e.create(s, e.path("a"), nil, driver.Ephemeral)
			sequential := e.create(s, e.path("s-"), nil, driver.EphemeralSequential)
			for _, path := range []string{e.path("a"), sequential} {
				if owner := e.read(other, path).Stat.EphemeralOwner; owner != s.ID() {
					e.Fatalf("the owner of %s is %#x, want its session %#x", path, owner, s.ID())
				}
			}
		}},
		{"stat/zxids grow with every change of any session", func(e *env) {
			s, other := e.connect(), e.connect()
			var last int64
			for i := range 6 {
				by := s
				if i%2 == 1 {
					by = other
				}
				path := e.path(strconv.Itoa(i))
				e.create(by, path, nil, driver.Persistent)
				stat := e.read(by, path).Stat
				if stat.Czxid <= last {
					e.Fatalf("create %d has zxid %#x, the change before it had %#x", i, stat.Czxid, last)
				}
				last = e.set(by, path, "x").Mzxid
			}
		}},
		{"stat/is the same from get, children and watch", func(e *env) {
			s := e.connect()
			e.set(s, e.root, "x")
			e.create(s, e.path("a"), nil, driver.Persistent)
			got := e.read(s, e.root).Stat
			_, listed, err := s.Children(e.ctx, e.root)
			e.ok(err, "children")
			watched, _ := e.watch(s, e.root)
			if got != listed || got != watched.Stat {
				e.Fatalf("the stat differs: get returned %+v, children %+v, watch %+v", got, listed, watched.Stat)
			}
		}},
	}
}

// suffix returns the sequence number at the end of a path that begins with prefix.
func (e *env) suffix(path, prefix string) int {
	e.Helper()
	if len(path) != len(prefix)+10 || path[:len(prefix)] != prefix {
		e.Fatalf("the sequential path %q is not %q and ten digits", path, prefix)
	}
	n, err := strconv.ParseUint(path[len(prefix):], 10, 32)
	if err != nil || n > math.MaxInt32 {
		e.Fatalf("the sequential path %q does not end in a sequence number", path)
	}
	return int(n)
}

func sequenceTests() []test {
	return []test{
		{"sequence/suffixes have ten digits and count from zero", func(e *env) {
			s := e.connect()
			for want := range 3 {
				if got := e.suffix(e.create(s, e.path("n-"), nil, driver.PersistentSequential), e.path("n-")); got != want {
					e.Fatalf("suffix %d, want %d", got, want)
				}
			}
		}},
		{"sequence/names are those that the parent lists", func(e *env) {
			s := e.connect()
			path := e.create(s, e.path("n-"), []byte("x"), driver.EphemeralSequential)
			if got := e.names(s, e.root); len(got) != 1 || e.path(got[0]) != path {
				e.Fatalf("create returned %s, but the parent lists %q", path, got)
			}
			e.data(s, path, "x")
		}},
		{"sequence/suffixes increase across sessions", func(e *env) {
			s, other := e.connect(), e.connect()
			last := -1
			for i := range 6 {
				by := s
				if i%2 == 1 {
					by = other
				}
				next := e.suffix(e.create(by, e.path("n-"), nil, driver.EphemeralSequential), e.path("n-"))
				if next <= last {
					e.Fatalf("the suffix %d follows %d, want a higher one", next, last)
				}
				last = next
			}
		}},
		{"sequence/suffixes are not given again after deletes", func(e *env) {
			s := e.connect()
			for want := range 4 {
				path := e.create(s, e.path("n-"), nil, driver.EphemeralSequential)
				if got := e.suffix(path, e.path("n-")); got != want {
					e.Fatalf("suffix %d, want %d", got, want)
				}
				e.delete(s, path)
			}
		}},
		{"sequence/suffixes are not given again after the end of a session", func(e *env) {
			s, other := e.connect(), e.connect()
			first := e.suffix(e.create(s, e.path("n-"), nil, driver.EphemeralSequential), e.path("n-"))
			e.ok(s.Close(e.ctx), "close")
			if next := e.suffix(e.create(other, e.path("n-"), nil, driver.EphemeralSequential), e.path("n-")); next <= first {
				e.Fatalf("the suffix %d follows %d, want a higher one", next, first)
			}
		}},
		{"sequence/is shared by all prefixes and modes of one parent", func(e *env) {
			s := e.connect()
			for want, prefix := range []string{"a-", "b-", "a-", ""} {
				mode := driver.PersistentSequential
				if want%2 == 1 {
					mode = driver.EphemeralSequential
				}
				if got := e.suffix(e.create(s, e.path(prefix), nil, mode), e.path(prefix)); got != want {
					e.Fatalf("suffix of %q is %d, want %d", prefix, got, want)
				}
			}
		}},
		{"sequence/counts plain children too", func(e *env) {
			s := e.connect()
			e.create(s, e.path("plain"), nil, driver.Persistent)
			e.create(s, e.path("brief"), nil, driver.Ephemeral)
			if got := e.suffix(e.create(s, e.path("n-"), nil, driver.PersistentSequential), e.path("n-")); got != 2 {
				e.Fatalf("suffix after two plain children is %d, want 2", got)
			}
		}},
		{"sequence/does not count creates that were rolled back", func(e *env) {
			s, other := e.connect(), e.connect()
			create := driver.CreateOp(e.path("n-"), nil, driver.EphemeralSequential, everyone())
			missing := driver.DeleteOp(e.path("missing"), driver.AnyVersion)
			for want, refused := range [][]driver.Op{{create, missing}, {missing, create}, {create, create, create, missing}, nil} {
				if got := e.suffix(e.create(s, e.path("n-"), nil, driver.EphemeralSequential), e.path("n-")); got != want {
					e.Fatalf("suffix %d, want %d", got, want)
				}
				if refused != nil {
					e.rolledBack(other, slices.IndexFunc(refused, func(op driver.Op) bool { return op.Kind == driver.OpDelete }), driver.ErrNoNode, refused...)
				}
			}
		}},
		{"sequence/belongs to one parent and starts at zero when that is made again", func(e *env) {
			s := e.connect()
			for range 2 {
				for _, parent := range []string{e.path("p"), e.path("q")} {
					e.create(s, parent, nil, driver.Persistent)
					path := e.create(s, parent+"/n-", nil, driver.PersistentSequential)
					if got := e.suffix(path, parent+"/n-"); got != 0 {
						e.Fatalf("the first suffix under %s is %d, want 0", parent, got)
					}
					e.delete(s, path)
					e.delete(s, parent)
				}
			}
		}},
		{"sequence/order is the order of zxids, under concurrency", func(e *env) {
			const sessions, each = 4, 8
			var wg sync.WaitGroup
			made := make(chan string, sessions*each)
			failed := make(chan error, sessions*each)
			for range sessions {
				s := e.connect()
				for range each {
					wg.Go(func() {
						path, err := s.Create(e.ctx, e.path("n-"), nil, driver.EphemeralSequential, everyone())
						made <- path
						failed <- err
					})
				}
			}
			wg.Wait()
			reader := e.connect()
			zxids := make(map[int]int64)
			for range sessions * each {
				e.ok(<-failed, "create")
				path := <-made
				zxids[e.suffix(path, e.path("n-"))] = e.read(reader, path).Stat.Czxid
			}
			if len(zxids) != sessions*each {
				e.Fatalf("%d creates got only %d different suffixes", sessions*each, len(zxids))
			}
			for n := range sessions*each - 1 {
				if zxids[n] >= zxids[n+1] {
					e.Fatalf("suffix %d has zxid %#x, but suffix %d has %#x, which is not higher", n, zxids[n], n+1, zxids[n+1])
				}
			}
		}},
	}
}
