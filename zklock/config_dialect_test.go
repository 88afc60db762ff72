package zklock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

var allDialects = []string{"zklock", "curator", "zk", "kazoo", "latch"}

// foreignSession is a session of another program. It creates nodes as other libraries do.
type foreignSession struct {
	t *testing.T
	driver.Session
}

func newForeignSession(t *testing.T, e *memdriver.Ensemble) foreignSession {
	t.Helper()
	s, err := e.Connector().Connect(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return foreignSession{t, s}
}

func (s foreignSession) create(path string, data string, mode driver.Mode) string {
	s.t.Helper()
	made, err := s.Create(s.t.Context(), path, []byte(data), mode, driver.OpenACL(driver.PermAll))
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

func (s foreignSession) remove(path string) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), path, driver.AnyVersion); err != nil {
		s.t.Fatal(err)
	}
}

func (s foreignSession) data(path string) string {
	s.t.Helper()
	n, err := s.Get(s.t.Context(), path)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(n.Data)
}

func (s foreignSession) children(path string) []string {
	s.t.Helper()
	names, _, err := s.Children(s.t.Context(), path)
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

// The table in the comment of queue.Dialect, cell by cell: a contender of another library
// holds the lock, with a node as its recipe names it, and a client of ours requests it.
func TestForeignHolderIsWaitedForOrConflictsInEveryDialect(t *testing.T) {
	for _, recipe := range []struct {
		name, node string
		excludes   []string // the dialects that share the lock with it
		use        string   // the dialect that the error of the other dialects advises
	}{
		{"Curator write lock", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__", []string{"zklock"}, "zklock"},
		{"Curator read lock", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__READ__", []string{"zklock"}, "zklock"},
		{"Curator mutex", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-lock-", []string{"curator", "zk"}, "curator"},
		{"go-zookeeper lock", "_c_1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed-lock-", []string{"curator", "zk"}, "zk"},
		{"kazoo lock", "1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__lock__", []string{"kazoo"}, "kazoo"},
		{"kazoo read lock", "1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__rlock__", []string{"kazoo"}, "kazoo"},
		{"Curator leader latch", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-latch-", []string{"latch"}, "latch"},
	} {
		for _, dialect := range allDialects {
			t.Run(recipe.name+"/"+dialect, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ensemble := memdriver.New()
					defer ensemble.Close()
					c, other := inDialect(t, ensemble.Connector(), dialect), newForeignSession(t, ensemble)
					defer c.Close()
					defer other.Close(t.Context())
					if err := c.Ping(t.Context()); err != nil {
						t.Fatal(err)
					}
					other.create("/zklock/a", "", driver.Persistent)
					theirs := other.create("/zklock/a/"+recipe.node, "foreign holder", driver.EphemeralSequential)
					excludes := false
					for _, d := range recipe.excludes {
						excludes = excludes || d == dialect
					}
					if _, err := c.Mutex("a").TryAcquire(t.Context()); excludes && !errors.Is(err, zklock.ErrNotAcquired) || !excludes && !errors.Is(err, zklock.ErrConflict) {
						t.Errorf("TryAcquire = %v", err)
					}
					done := make(chan error, 1)
					var lock *zklock.Lock
					go func() {
						var err error
						lock, err = c.Mutex("a").Acquire(t.Context())
						done <- err
					}()
					synctest.Wait()
					select {
					case err := <-done:
						if excludes || !errors.Is(err, zklock.ErrConflict) || !strings.Contains(err.Error(), "dialect="+recipe.use+" ") {
							t.Fatalf("Acquire = %v; want it to wait: %v, or to name dialect=%s", err, excludes, recipe.use)
						}
						time.Sleep(time.Second)
						if left := other.children("/zklock/a"); len(left) != 1 {
							t.Errorf("the queue has %v, want only the foreign node", left)
						}
						return
					default:
					}
					if !excludes {
						t.Fatal("Acquire waits for a contender that would not wait for it")
					}
					other.remove(theirs)
					if err := <-done; err != nil {
						t.Fatal(err)
					}
					if err := lock.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// In newer releases of Curator, a thread that holds the write lock may take the read lock
// and then release the write lock. Its read node has the sequence number of its write
// node, so the read node is inserted ahead of the waiters.
func TestWriterOfCuratorsThatBecomesReaderIsStillWaitedFor(t *testing.T) {
	for _, between := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ensemble := memdriver.New()
			defer ensemble.Close()
			c, other := inDialect(t, ensemble.Connector(), "zklock"), newForeignSession(t, ensemble)
			defer c.Close()
			defer other.Close(t.Context())
			if err := c.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			other.create("/zklock/a", "", driver.Persistent)
			writer := other.create("/zklock/a/_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__", "", driver.EphemeralSequential)
			giveUp, cancel := context.WithCancel(t.Context())
			var first sync.WaitGroup
			if between { // another client of ours waits between the two, and gives up
				d := inDialect(t, ensemble.Connector(), "zklock")
				defer d.Close()
				first.Go(func() { _, _ = d.Mutex("a").Acquire(giveUp) })
				synctest.Wait()
			}
			done := make(chan *zklock.Lock, 1)
			go func() {
				l, err := c.Mutex("a").Acquire(t.Context())
				if err != nil {
					t.Error(err)
				}
				done <- l
			}()
			synctest.Wait()
			suffix := writer[len(writer)-10:]
			reader := other.create("/zklock/a/_c_2c9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__READ__"+suffix, "", driver.Ephemeral)
			other.remove(writer)
			cancel()
			first.Wait()
			time.Sleep(time.Second)
			select {
			case <-done:
				t.Fatalf("the client holds the lock while a reader holds it (another waiter between: %v)", between)
			default:
			}
			other.remove(reader)
			if l := <-done; l != nil {
				_ = l.Release(t.Context())
			}
		})
	}
}

func TestKindsThatADialectCannotExpressConflict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ensemble := memdriver.New()
		defer ensemble.Close()
		for dialect, refused := range map[string]int{"zklock": 0, "kazoo": 1, "curator": 2, "zk": 2, "latch": 2} {
			c := inDialect(t, ensemble.Connector(), dialect)
			got := 0
			for _, a := range []zklock.Acquirer{c.Mutex(dialect + "1"), c.RWMutex(dialect + "2").Writer(), c.RWMutex(dialect + "3").Reader(), c.Semaphore(dialect+"4", 2)} {
				l, err := a.Acquire(t.Context())
				switch {
				case errors.Is(err, zklock.ErrConflict) && strings.Contains(err.Error(), "dialect="+dialect):
					got++
				case err != nil:
					t.Errorf("%s: %v", dialect, err)
				default:
					_ = l.Release(t.Context())
				}
			}
			if got != refused {
				t.Errorf("%s: %d kinds of lock were refused, want %d", dialect, got, refused)
			}
			_ = c.Close()
		}
	})
}

// In the dialects of other libraries a slash in a name separates znodes. A lock below
// another lock is refused where its znode would pass for a contender of that lock.
func TestNamesArePathsInTheDialectsOfOthers(t *testing.T) {
	for _, dialect := range allDialects[1:] {
		synctest.Test(t, func(t *testing.T) {
			ensemble := memdriver.New(memdriver.WithReapInterval(24 * time.Hour))
			defer ensemble.Close()
			c, other := inDialect(t, ensemble.Connector(), dialect), newForeignSession(t, ensemble)
			defer c.Close()
			defer other.Close(t.Context())
			hold := func(name string) error {
				l, err := c.Mutex(name).Acquire(t.Context())
				if err == nil {
					err = l.Release(t.Context())
				}
				return err
			}
			if got := c.Mutex("a b/c").Path(); got != "/zklock/a b/c" {
				t.Errorf("%s: path %q", dialect, got)
			}
			if err := c.Ping(t.Context()); err != nil {
				t.Fatal(err)
			}
			other.create("/zklock/theirs", "their data", driver.Persistent)
			other.create("/zklock/empty", "", driver.Persistent)
			for _, name := range []string{"a b/c/d", "theirs", "empty", "theirs/below"} {
				if err := hold(name); err != nil {
					t.Errorf("%s: %q: %v", dialect, name, err)
				}
			}
			for path, want := range map[string]string{"/zklock/a b": "", "/zklock/a b/c": "", "/zklock/a b/c/d": "zklock", "/zklock/theirs": "their data", "/zklock/empty": "zklock"} {
				if got := other.data(path); got != want {
					t.Errorf("%s: the data of %s is %q, want %q", dialect, path, got, want)
				}
			}
			err := hold("empty/below")
			if dialect == "kazoo" && err != nil || dialect != "kazoo" && !errors.Is(err, zklock.ErrConflict) {
				t.Errorf("%s: a lock below a lock: %v", dialect, err)
			}

			time.Sleep(time.Minute) // until the client has removed the idle znodes that it created
			kept := strings.Join(other.children("/zklock/a b/c"), " ")
			if dialect == "kazoo" && kept != "d" || dialect != "kazoo" && kept != "" {
				t.Errorf("%s: after an idle minute the children are %q", dialect, kept)
			}
			other.data("/zklock/theirs")
			other.data("/zklock/empty")
		})
	}
}

// Another program writes the data of a lock's znode after our client has read it as empty,
// and before our client writes its mark there. The other program's data stays.
func TestDataWrittenMeanwhileStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ensemble := memdriver.New()
		defer ensemble.Close()
		other := newForeignSession(t, ensemble)
		defer other.Close(t.Context())
		other.create("/zklock", "", driver.Persistent)
		other.create("/zklock/a", "", driver.Persistent)
		var once sync.Once
		write := faultdriver.If("a set of the parent", func(op faultdriver.Op) bool {
			if op.Kind == faultdriver.Set {
				once.Do(func() {
					if _, err := other.Set(context.Background(), "/zklock/a", []byte("theirs"), driver.AnyVersion); err != nil {
						t.Error(err)
					}
				})
			}
			return false
		}, faultdriver.None())
		c := inDialect(t, faultdriver.Wrap(ensemble.Connector(), write), "curator")
		defer c.Close()
		for range 2 {
			l, err := c.Mutex("a").Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = l.Release(t.Context())
		}
		if got := other.data("/zklock/a"); got != "theirs" {
			t.Errorf("the data of the lock's znode is %q, want the other program's", got)
		}
	})
}

// Servers before 3.6 give negative sequence numbers when their counter has overflowed.
// A contender with such a number is behind all others: a try goes ahead of it like any
// other acquisition.
func TestTryGoesAheadOfANegativeNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		s := plain(t, e)
		c := connect(t, e.Connector(), nil)
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		if _, err := s.Create(t.Context(), "/zklock/x/a-__WRIT__-000000005", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
		mustRelease(t, mustLock(t)(c.Mutex("x").TryAcquire(t.Context())))
		mustRelease(t, mustLock(t)(c.Semaphore("x", 1).TryAcquire(t.Context())))
	})
}

// A child whose name does not end in a sequence number is not a contender for a client
// of any dialect: it never gets a turn, and no client waits for it.
func TestChildrenWithoutASequenceAreNoContenders(t *testing.T) {
	const id = "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed"
	for _, child := range []string{
		"_c_" + id + "-__WRIT__", "_c_" + id + "-__WRIT__notes", "__READ__42", "_c_" + id + "-__PERM2__000000001", "x__WRIT__00000000001",
		"_c_" + id + "-lock-", "lock-1", "1b9d6bcdbbfd4b2d9b5dab8dfbbd4bed__lock__1",
	} {
		for _, dialect := range []string{"zklock", "curator", "kazoo"} {
			t.Run(dialect+" "+child, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New()
					s := plain(t, e)
					c := connect(t, e.Connector(), map[string]string{"dialect": dialect})
					mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
					if _, err := s.Create(t.Context(), "/zklock/x/"+child, nil, driver.Ephemeral, driver.OpenACL(driver.PermAll)); err != nil {
						t.Fatal(err)
					}
					kinds := []zklock.Acquirer{c.Mutex("x")}
					if dialect != "curator" {
						kinds = append(kinds, c.RWMutex("x").Reader())
					}
					if dialect == "zklock" {
						kinds = append(kinds, c.Semaphore("x", 3))
					}
					for _, a := range kinds {
						l := mustLock(t)(a.Acquire(t.Context()))
						found, err := c.Contenders(t.Context(), "x")
						if err != nil || len(found) != 1 || !found[0].Held || found[0].Foreign {
							t.Errorf("contenders while a %T holds: %+v, error %v; want only the holder", a, found, err)
						}
						mustRelease(t, l)
						l, err = a.TryAcquire(t.Context())
						if err != nil {
							t.Errorf("TryAcquire of a %T: %v", a, err)
							continue
						}
						mustRelease(t, l)
					}
					if err := c.Break(t.Context(), "x", child); !errors.Is(err, zklock.ErrConflict) {
						t.Errorf("Break of a child that is not a contender: %v, want ErrConflict", err)
					}
				})
			})
		}
	}
}
