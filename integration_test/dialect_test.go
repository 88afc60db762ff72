package integration_test

import (
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/zklock"
)

// recipes are the locks of other libraries, with what the documentation says about them.
var recipes = []struct {
	library, kind string
	shares        []string // zklock's mutex in these dialects and this lock exclude each other
	use           string   // the dialect that the error in other dialects names
}{
	{"curator", "write", []string{"zklock"}, "zklock"},
	{"curator", "read", []string{"zklock"}, "zklock"},
	{"curator", "mutex", []string{"curator", "zk"}, "curator"},
	{"curator", "selector", []string{"curator", "zk"}, "curator"},
	{"curator", "latch", []string{"latch"}, "latch"},
	{"gozk", "lock", []string{"curator", "zk"}, "zk"},
	{"kazoo", "lock", []string{"kazoo"}, "kazoo"},
	{"kazoo", "write", []string{"kazoo"}, "kazoo"},
	{"kazoo", "read", []string{"kazoo"}, "kazoo"},
	{"kazoo", "election", []string{"kazoo"}, "kazoo"},
}

// TestDialects runs three processes of each of the other libraries together with zklock.
func TestDialects(t *testing.T) {
	t.Parallel()
	hosts, root := sharedEnsemble(t).Hosts(), rootOf(t)
	conn := dialRaw(t, hosts, patience)
	peers := map[string][]*peer{
		"curator": curatorPeers(t, 3, hosts),
		"gozk":    goPeers(t, 3, "gozk", hosts),
		"kazoo":   kazooPeers(t, 3, hosts),
	}
	clients, keepers := map[string]*zklock.Client{}, map[string]*zklock.Client{}
	for _, dialect := range []string{"zklock", "curator", "zk", "kazoo", "latch"} {
		c, err := zklock.Open("zk://" + hosts + root + "?tick_time=500ms&dialect=" + dialect)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Ping(within(t)); err != nil { // creates the root
			t.Fatal(err)
		}
		clients[dialect] = c
		if keepers[dialect], err = zklock.Open("zk://" + hosts + root + "?tick_time=500ms&keep=1h&dialect=" + dialect); err != nil {
			t.Fatal(err)
		}
		defer keepers[dialect].Close()
		peers[dialect+"-zklock"] = goPeers(t, 3, "zklock", hosts, root, dialect)
	}
	for _, ps := range peers {
		for _, p := range ps {
			p.expect(t, "ready")
		}
	}
	// queue waits until a queue has n contenders.
	queue := func(t *testing.T, dir string, n int) {
		t.Helper()
		eventually(t, "the queue has the expected number of contenders", func() bool {
			names, _, err := conn.Children(dir)
			return err == nil && len(names) == n || errors.Is(err, zk.ErrNoNode) && n == 0
		})
	}

	for _, f := range recipes {
		for dialect, c := range clients {
			name := strings.Join([]string{f.library, f.kind, dialect}, "-")
			t.Run(name, func(t *testing.T) {
				p, m := peers[f.library][0], c.Mutex(name)
				if !slices.Contains(f.shares, dialect) {
					p.send("acquire %s %s", f.kind, m.Path())
					p.expect(t, "held")
					if _, err := m.Acquire(within(t)); !errors.Is(err, zklock.ErrConflict) || !strings.Contains(err.Error(), "dialect="+f.use+" ") {
						t.Errorf("Acquire = %v, want a conflict that names dialect=%s", err, f.use)
					}
					if _, err := m.TryAcquire(within(t)); !errors.Is(err, zklock.ErrConflict) {
						t.Errorf("TryAcquire = %v, want a conflict", err)
					}
					queue(t, m.Path(), 1)
					p.send("release")
					p.expect(t, "released")
					return
				}
				l := acquire(t, m) // the other library waits for zklock
				p.send("acquire %s %s", f.kind, m.Path())
				queue(t, m.Path(), 2)
				p.silent(t)
				release(t, l)
				p.expect(t, "held")

				a := try(t, within(t), m) // zklock waits for the other library
				queue(t, m.Path(), 2)
				if _, err := clients[dialect].Mutex(name).TryAcquire(within(t)); !errors.Is(err, zklock.ErrNotAcquired) {
					t.Errorf("TryAcquire = %v, want ErrNotAcquired", err)
				}
				a.pending(t)
				p.send("release")
				p.expect(t, "released")
				release(t, a.must(t))
				queue(t, m.Path(), 0)

				// zklock keeps its place in the queue after the release (the URL key keep), and
				// gives it up when the other library asks for the lock.
				m = keepers[dialect].Mutex(name + "-kept")
				for range 2 {
					release(t, acquire(t, m))
				}
				queue(t, m.Path(), 1)
				p.send("acquire %s %s", f.kind, m.Path())
				p.expect(t, "held")
				queue(t, m.Path(), 1)
				a = try(t, within(t), m)
				queue(t, m.Path(), 2)
				a.pending(t)
				p.send("release")
				p.expect(t, "released")
				release(t, a.must(t))
				queue(t, m.Path(), 0)
			})
		}
	}

	// zklock's readers, where the other library has readers, too.
	for _, f := range []struct{ library, dialect string }{{"curator", "zklock"}, {"kazoo", "kazoo"}} {
		t.Run(f.library+"-readers", func(t *testing.T) {
			rw := clients[f.dialect].RWMutex(f.library + "-readers")
			dir, p := rw.Writer().Path(), peers[f.library][0]
			l := acquire(t, rw.Reader()) // while zklock's reader holds, readers hold too, and writers wait
			p.send("acquire read %s", dir)
			p.expect(t, "held")
			p.send("release")
			p.expect(t, "released")
			p.send("acquire write %s", dir)
			queue(t, dir, 2)
			p.silent(t)
			release(t, l)
			p.expect(t, "held")
			a := try(t, within(t), rw.Reader()) // while their writer holds, zklock's reader waits
			queue(t, dir, 2)
			a.pending(t)
			p.send("release")
			p.expect(t, "released")
			release(t, a.must(t))
			p.send("acquire read %s", dir)
			p.expect(t, "held")
			release(t, acquire(t, rw.Reader()))
			p.send("release")
			p.expect(t, "released")
		})
	}

	// A client that keeps a name does not give it up before it hears of another contender. So a try
	// of another library fails, and a wait ends once the client hears of it.
	for _, f := range []struct{ library, kind, dialect string }{
		{"curator", "mutex", "curator"}, {"curator", "mutex", "zk"}, {"curator", "write", "zklock"}, {"curator", "read", "zklock"},
		{"kazoo", "lock", "kazoo"}, {"kazoo", "write", "kazoo"}, {"kazoo", "read", "kazoo"},
	} {
		t.Run("try/"+f.library+"-"+f.kind+"-"+f.dialect, func(t *testing.T) {
			link, p := newProxy(t, hosts), peers[f.library][0]
			m := dial(t, link.Addr(), quick("keep", "1h", "dialect", f.dialect)).Mutex("tried")
			for range 2 {
				release(t, acquire(t, m))
			}
			queue(t, m.Path(), 1)
			link.Stall(proxy.Both)
			p.send("try %s %s", f.kind, m.Path())
			p.expect(t, "refused")
			queue(t, m.Path(), 1)
			link.Heal()
			p.send("acquire %s %s", f.kind, m.Path())
			p.expect(t, "held")
			queue(t, m.Path(), 1)
			p.send("release")
			p.expect(t, "released")
			p.send("try %s %s", f.kind, m.Path())
			p.expect(t, "held")
			p.send("release")
			p.expect(t, "released")
		})
	}

	// Names in the other libraries' dialects are paths, which any program may have
	// created.
	t.Run("paths", func(t *testing.T) {
		for library, dialect := range map[string]string{"curator": "curator", "gozk": "zk", "kazoo": "kazoo"} {
			kind := map[string]string{"curator": "mutex", "gozk": "lock", "kazoo": "lock"}[library]
			for _, first := range []string{"ours", "theirs"} {
				m, p := clients[dialect].Mutex(path.Join(library, "first", first, "a")), peers[library][0]
				l := (*zklock.Lock)(nil)
				if first == "ours" {
					l = acquire(t, m)
				}
				p.send("acquire %s %s", kind, m.Path())
				if first == "ours" {
					queue(t, m.Path(), 2)
					p.silent(t)
					release(t, l)
				}
				p.expect(t, "held")
				p.send("release")
				p.expect(t, "released")
				release(t, acquire(t, m))
			}
		}
	})

	// All processes contend at the same time. kazoo's readers and writers do not take
	// part: they would deadlock, even among themselves.
	const rounds = "50"
	for _, contest := range []struct {
		name  string
		kinds map[string][]string
	}{
		{"read-write", map[string][]string{"curator": {"write", "read", "write"}, "zklock-zklock": {"write", "write", "read"}}},
		{"mutex", map[string][]string{"curator": {"mutex"}, "gozk": {"lock"}, "curator-zklock": {"write"}, "zk-zklock": {"write"}}},
		{"latch", map[string][]string{"curator": {"latch"}, "latch-zklock": {"write"}}},
		{"kazoo", map[string][]string{"kazoo": {"lock"}, "kazoo-zklock": {"write"}}},
	} {
		t.Run("contest/"+contest.name, func(t *testing.T) {
			dir, guard := root+"/contest-"+contest.name, root+"/guard-"+contest.name
			if _, err := conn.Create(guard, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
				t.Fatal(err)
			}
			for who, kinds := range contest.kinds {
				for i, p := range peers[who] {
					p.send("contend %s %s %s %s", kinds[i%len(kinds)], dir, rounds, guard)
				}
			}
			for who := range contest.kinds {
				for _, p := range peers[who] {
					p.expect(t, "done")
				}
			}
			queue(t, dir, 0)
		})
	}
}
