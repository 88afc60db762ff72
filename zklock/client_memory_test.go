//go:build !race

package zklock_test

import (
	"context"
	"hash/maphash"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/internal/control"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// These tests measure the memory of locks and waiters. The ensemble stores only watches,
// whose memory is subtracted. So the figures are the library's own, without what a driver
// keeps for a watch. The tests are not built with the race detector, which needs memory
// itself.
const (
	maxHeld   = 1568 // bytes per held lock
	maxKept   = 1664 // bytes per kept name
	maxWaiter = 1024 // bytes per local waiter, in addition to the goroutine that waits

	maxSeparate = 4096 // bytes per waiter with a place of its own, in addition to the goroutine that waits

	freshStack = 2048 // bytes of stack of a goroutine that has done nothing yet
)

// crowdSize returns the number of locks or waiters. ZKLOCK_NAMES sets another number.
func crowdSize(t *testing.T) int64 {
	n := int64(10_000)
	if s := os.Getenv("ZKLOCK_NAMES"); s != "" {
		var err error
		if n, err = strconv.ParseInt(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// usage is memory on the heap and of stacks.
type usage struct{ heap, stack int64 }

func (b usage) minus(c usage) usage { return usage{b.heap - c.heap, b.stack - c.stack} }

// of returns the share of one of n.
func (b usage) of(n int64) usage { return usage{b.heap / n, b.stack / n} }

func (b usage) sum() int64 { return b.heap + b.stack }

// memory returns what the heap and the stacks take after garbage collection.
func memory() usage {
	var m runtime.MemStats
	for range 3 { // the second frees what a sync.Pool keeps; finalizers need one more
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return usage{int64(m.HeapAlloc), int64(m.StackInuse)}
}

// TestHeldLocksMemory holds many names on two sessions, each with its watch, in three
// rounds. Memory that is not freed shows in the figures of the later rounds.
func TestHeldLocksMemory(t *testing.T) {
	long.Test(t, "it measures memory")
	many := crowdSize(t)
	synctest.Test(t, func(t *testing.T) {
		c, e := forgetfulClient(t)
		names := make([]string, many)
		locks := make([]*zklock.Lock, many)
		ctx := context.Background()
		model := watchesAlone(many)
		var each, left []usage
		for round := range 3 {
			for i := range names { // new names each time: nothing of a name may stay
				names[i] = "orders/" + strconv.Itoa(round) + "/" + strconv.Itoa(i)
			}
			before, watched := memory(), e.asked()
			for i, name := range names {
				l, err := c.Mutex(name).Acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				locks[i] = l
			}
			time.Sleep(5 * time.Second) // in the bubble's time, until the watches are armed
			synctest.Wait()
			if n := e.sessions.Load(); n != 2 {
				t.Errorf("%d sessions, want the locks on two", n)
			}
			if n := int64(e.asked() - watched); n != many {
				t.Errorf("round %d: %d watches, want one for each of %d locks", round, n, many)
			}
			held := memory().minus(before).minus(model)
			for i, l := range locks {
				if err := l.Release(ctx); err != nil {
					t.Fatal(err)
				}
				locks[i] = nil
			}
			time.Sleep(time.Minute) // until the client has dropped idle names
			synctest.Wait()
			each, left = append(each, held.of(many)), append(left, memory().minus(before).of(many))
		}
		runtime.KeepAlive(names)
		t.Logf("bytes per held lock in three rounds: %+v; left after its release: %+v", each, left)
		check(t, "a held lock", each, left, maxHeld)
	})
}

// TestKeptNamesMemory keeps many names on two sessions, each with a watch on its node and one
// on its queue, in three rounds.
func TestKeptNamesMemory(t *testing.T) {
	long.Test(t, "it measures memory")
	many := crowdSize(t)
	synctest.Test(t, func(t *testing.T) {
		c, e := forgetfulConfig(t, zklock.Config{Keep: time.Minute, KeepMax: 1_000_000}, control.WithKeepAfter[zklock.Option](0))
		e.lists = true
		memoryOfWaiting(many, func(ctx context.Context) { <-ctx.Done() }) // the runtime keeps ended goroutines for reuse
		model := watchesAlone(2 * many)
		names := make([]string, many)
		var each, left []usage
		for round := range 3 {
			for i := range names {
				names[i] = "orders/" + strconv.Itoa(round) + "/" + strconv.Itoa(i)
			}
			before, watched := memory(), e.asked()
			for _, name := range names {
				cycle(t, c.Mutex(name))
			}
			time.Sleep(5 * time.Second) // in the bubble's time, until the watches are armed
			synctest.Wait()
			if n := int64(e.asked() - watched); n != 2*many {
				t.Errorf("round %d: %d watches, want two for each of %d names", round, n, many)
			}
			if n := int64(c.Stats().Kept); n != many {
				t.Errorf("round %d: %d names are kept, want %d", round, n, many)
			}
			kept := memory().minus(before).minus(model)
			time.Sleep(2 * time.Minute) // until the client has given up and dropped the names
			synctest.Wait()
			each, left = append(each, kept.of(many)), append(left, memory().minus(before).of(many))
		}
		runtime.KeepAlive(names)
		t.Logf("bytes per kept name in three rounds: %+v; left after its time: %+v", each, left)
		check(t, "a kept name", each, left, maxKept)
	})
}

// watchesAlone returns the memory that the ensemble needs for that many watches.
func watchesAlone(many int64) usage {
	e := newForgetful()
	before := memory()
	for i := range many {
		e.watch("/" + strconv.FormatInt(i, 10))
	}
	took := memory().minus(before)
	runtime.KeepAlive(e)
	return took
}

// TestWaitersMemory measures many goroutines that wait for one name, which a goroutine of
// the same process holds. The goroutines and their stacks are the caller's and not the
// library's. So the heap of as many goroutines that wait on a channel is subtracted.
// Stacks come in a few sizes, and a goroutine that has done anything at all has a larger
// one than a fresh goroutine. The library must not need more than the second size.
func TestWaitersMemory(t *testing.T) {
	long.Test(t, "it measures memory")
	many := crowdSize(t)
	synctest.Test(t, func(t *testing.T) {
		c, _ := forgetfulClient(t)
		m := c.Mutex("orders")
		memoryOfWaiting(many, func(ctx context.Context) { <-ctx.Done() }) // the runtime keeps ended goroutines for reuse
		idle := memoryOfWaiting(many, func(ctx context.Context) { <-ctx.Done() })
		var each, left []usage
		var stacks []int64
		for range 3 {
			before := memory()
			l, err := m.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			waiting := memoryOfWaiting(many, func(ctx context.Context) {
				if _, err := m.Acquire(ctx); err == nil {
					t.Error("a waiter acquired a lock that is held")
				}
			})
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			each, left = append(each, waiting.minus(idle).of(many)), append(left, memory().minus(before).of(many))
			if all := waiting.of(many).stack; all > 2*freshStack*11/10 {
				t.Errorf("a waiter's stack has %d bytes on average, want at most %d", all, 2*freshStack)
			}
			stacks, each[len(each)-1].stack = append(stacks, waiting.of(many).stack), 0
		}
		t.Logf("bytes per waiter in three rounds: %+v, in addition to its goroutine's %+v; its stack while it waits: %d; left afterwards: %+v", each, idle.of(many), stacks, left)
		check(t, "a waiter", each, left, maxWaiter)
	})
}

// TestSeparateWaitersMemory measures goroutines of one process that wait for one name with
// places of their own: what one needs must not grow with the number of those ahead of it. The
// memory of the ensemble is subtracted. ZKLOCK_WAITERS sets the numbers: 1000,4000,10000.
func TestSeparateWaitersMemory(t *testing.T) {
	long.Test(t, "it measures memory")
	numbers := "500,2000"
	if s := os.Getenv("ZKLOCK_WAITERS"); s != "" {
		numbers = s
	}
	for _, kind := range []string{"semaphore", "without hand-over", "election", "All of two"} {
		t.Run(kind, func(t *testing.T) {
			for number := range strings.SplitSeq(numbers, ",") {
				n, err := strconv.ParseInt(number, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Test(t, func(t *testing.T) { separateWaiters(t, kind, n) })
			}
		})
	}
}

func separateWaiters(t *testing.T, kind string, n int64) {
	e := memdriver.New()
	c := connect(t, e.Connector(), nil)
	wait := func(a zklock.Acquirer, opts ...zklock.AcquireOption) func(context.Context) error {
		mustLock(t)(a.Acquire(t.Context()))
		return func(ctx context.Context) error {
			_, err := a.Acquire(ctx, opts...)
			return err
		}
	}
	var waiter func(context.Context) error
	names := int64(1)
	switch kind {
	case "semaphore":
		waiter = wait(c.Semaphore("x", 1))
	case "without hand-over":
		waiter = wait(c.Mutex("x"), zklock.WithoutHandover())
	case "election":
		leader := election.New(c, "x")
		if _, err := leader.Campaign(t.Context()); err != nil {
			t.Fatal(err)
		}
		waiter = func(ctx context.Context) error {
			_, err := election.New(c, "x").Campaign(ctx)
			return err
		}
	case "All of two":
		names = 2
		waiter = wait(zklock.All(c.Mutex("x"), c.Mutex("y")))
	}
	memoryOfWaiting(n, func(ctx context.Context) { <-ctx.Done() }) // the runtime keeps ended goroutines for reuse
	idle := memoryOfWaiting(n, func(ctx context.Context) { <-ctx.Done() })
	ensemble, s := nodesAlone(t, e, names*n)
	lists := memcontrol.Of(e).Ops().Children
	took := memoryOfWaiting(n, func(ctx context.Context) {
		if waiter(ctx); ctx.Err() == nil {
			t.Error("a waiter for a name that is held did not wait")
		}
	}, func() { time.Sleep(30 * time.Second) }) // in the bubble's time, until all watches are armed
	runtime.KeepAlive(s)
	each, stack := took.minus(idle).minus(ensemble).of(n).heap, took.of(n).stack
	t.Logf("%5d waiters: %d bytes each, in addition to a stack of %d and the ensemble's %d; %d lists", n, each, stack, ensemble.of(n).heap, memcontrol.Of(e).Ops().Children-lists)
	if each > maxSeparate {
		t.Errorf("one of %d waiters takes %d bytes, want at most %d", n, each, maxSeparate)
	}
}

// nodesAlone returns the memory that the ensemble needs for that many queue nodes, each with a
// watch. They stay while the session does.
func nodesAlone(t *testing.T, e *memdriver.Ensemble, many int64) (usage, driver.Session) {
	s := plain(t, e)
	before := memory()
	if _, err := s.Create(t.Context(), "/alone", nil, driver.Persistent, driver.OpenACL(driver.PermAll)); err != nil {
		t.Fatal(err)
	}
	for range many {
		node, err := s.Create(t.Context(), "/alone/_c_00000000-0000-0001-0000-00000000000b-__WRIT__", make([]byte, 70), driver.EphemeralSequential, driver.OpenACL(driver.PermAll))
		if err == nil {
			_, _, err = s.Watch(t.Context(), node)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return memory().minus(before), s
}

// memoryOfWaiting returns how much memory many goroutines take while they are in wait. The
// function wait returns when its context ends. Before the memory is measured, each of settle
// runs.
func memoryOfWaiting(many int64, wait func(context.Context), settle ...func()) usage {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	before := memory()
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() { wait(ctx) })
	}
	synctest.Wait()
	for _, f := range settle {
		f()
	}
	took := memory().minus(before)
	cancel()
	wg.Wait()
	synctest.Wait()
	return took
}

// check compares the rounds' figures with a limit and with each other.
func check(t *testing.T, what string, each, left []usage, limit int64) {
	t.Helper()
	stays := int64(math.MaxInt64)
	for i := range each {
		// The first round fills pools and maps that never shrink, so it may take a
		// little more.
		if most := limit + limit/8*int64(max(0, 1-i)); each[i].sum() > most {
			t.Errorf("round %d: %s takes %+v bytes, want at most %d", i, what, each[i], most)
		}
		if i > 0 && each[i].sum() > each[0].sum()*11/10 {
			t.Errorf("round %d: %s takes %+v bytes after %+v at first", i, what, each[i], each[0])
		}
		if i > 0 {
			stays = min(stays, left[i].heap)
		}
	}
	// A map that had the same number of other names before may grow once more, and then one
	// round leaves memory behind. What is not freed is left behind by every round.
	if stays > limit/20 {
		t.Errorf("of %s, %d bytes or more stay in each round: memory is not freed", what, stays)
	}
}

// forgetful is an ensemble that agrees to every request and stores only watches, by a hash
// of the path. So it adds hardly anything to what is measured with it.
type forgetful struct {
	sessions, zxid atomic.Int64
	seed           maphash.Seed
	lists          bool // it remembers the newest child below each path

	mu      sync.Mutex
	watches map[uint64]chan driver.Event // guarded by mu
	watched int                          // guarded by mu; how many watches were requested
	child   map[uint64]string            // guarded by mu; the newest child below a path, until it is listed
}

func (e *forgetful) watch(path string) <-chan driver.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watched++
	event := make(chan driver.Event, 1)
	e.watches[maphash.String(e.seed, path)] = event
	return event
}

// deleted sends the event of a znode's deletion to the watches on it and on its parent's
// children, if there are any.
func (e *forgetful) deleted(path string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := maphash.String(e.seed, path)
	if event := e.watches[key]; event != nil {
		delete(e.watches, key)
		event <- driver.Event{Type: driver.EventDeleted, Path: path}
		close(event)
	}
	dir := path[:strings.LastIndexByte(path, '/')]
	key = maphash.String(e.seed, dir+"/")
	if event := e.watches[key]; event != nil {
		delete(e.watches, key)
		event <- driver.Event{Type: driver.EventChildren, Path: dir}
		close(event)
	}
	delete(e.child, maphash.String(e.seed, dir))
}

// created remembers a node, if lists is set.
func (e *forgetful) created(path string) {
	if e.lists {
		e.mu.Lock()
		defer e.mu.Unlock()
		slash := strings.LastIndexByte(path, '/')
		e.child[maphash.String(e.seed, path[:slash])] = path[slash+1:]
	}
}

// asked returns how many watches were requested.
func (e *forgetful) asked() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.watched
}

func (e *forgetful) Connect(_ context.Context, timeout time.Duration) (driver.Session, error) {
	return &forgetfulSession{ensemble: e, id: e.sessions.Add(1), timeout: timeout, born: time.Now(), changed: make(chan struct{})}, nil
}

func (e *forgetful) Driver() driver.Driver { return nil }

func (e *forgetful) Diagnose() error { return nil }
func (e *forgetful) Close() error    { return nil }

type forgetfulSession struct {
	ensemble *forgetful
	id       int64
	timeout  time.Duration
	born     time.Time
	changed  chan struct{}
}

func (s *forgetfulSession) create(path string, mode driver.Mode) string {
	if mode.Sequential() {
		// All nodes have the same suffix: no list returns them, so none are compared.
		path += "0000000001"
		s.ensemble.created(path)
	}
	return path
}

func (s *forgetfulSession) Create(_ context.Context, path string, _ []byte, mode driver.Mode, _ []driver.ACL) (string, error) {
	return s.create(path, mode), nil
}

func (s *forgetfulSession) Delete(_ context.Context, path string, _ int32) error {
	s.ensemble.deleted(path)
	return nil
}

func (s *forgetfulSession) Get(context.Context, string) (driver.Node, error) {
	return driver.Node{Data: []byte("zklock"), Stat: driver.Stat{EphemeralOwner: s.id}}, nil
}

func (s *forgetfulSession) Set(context.Context, string, []byte, int32) (driver.Stat, error) {
	return driver.Stat{Mzxid: s.ensemble.zxid.Add(1), NumChildren: 1}, nil
}

func (s *forgetfulSession) Children(context.Context, string) ([]string, driver.Stat, error) {
	return nil, driver.Stat{}, nil
}

func (s *forgetfulSession) Sync(context.Context, string) error { return nil }

func (s *forgetfulSession) Watch(ctx context.Context, path string) (driver.Node, <-chan driver.Event, error) {
	n, err := s.Get(ctx, path)
	return n, s.ensemble.watch(path), err
}

func (s *forgetfulSession) WatchChildren(_ context.Context, path string) ([]string, driver.Stat, <-chan driver.Event, error) {
	e := s.ensemble
	event := e.watch(path + "/")
	e.mu.Lock()
	defer e.mu.Unlock()
	key := maphash.String(e.seed, path)
	name := e.child[key]
	delete(e.child, key)
	return []string{name}, driver.Stat{}, event, nil
}

func (s *forgetfulSession) WatchExists(_ context.Context, path string) (driver.Stat, bool, <-chan driver.Event, error) {
	return driver.Stat{}, true, s.ensemble.watch(path), nil
}

func (s *forgetfulSession) Multi(_ context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	zxid := s.ensemble.zxid.Add(1)
	results := make([]driver.OpResult, len(ops))
	for i, op := range ops {
		switch op.Kind {
		case driver.OpCreate:
			results[i].Path = s.create(op.Path, op.Mode)
		case driver.OpSet:
			results[i].Stat = driver.Stat{Mzxid: zxid, NumChildren: 1}
		case driver.OpDelete:
			s.ensemble.deleted(op.Path)
		}
	}
	return results, nil
}

func (s *forgetfulSession) ID() int64                 { return s.id }
func (s *forgetfulSession) Timeout() time.Duration    { return s.timeout }
func (s *forgetfulSession) Conn() (uint64, time.Time) { return 1, s.born }
func (s *forgetfulSession) Server() string            { return "nowhere" }
func (s *forgetfulSession) State() (driver.State, <-chan struct{}) {
	return driver.Connected, s.changed
}

func (s *forgetfulSession) Close(context.Context) error { return nil }

func newForgetful() *forgetful {
	return &forgetful{seed: maphash.MakeSeed(), watches: make(map[uint64]chan driver.Event), child: make(map[uint64]string)}
}

func forgetfulClient(t testing.TB, opts ...zklock.Option) (*zklock.Client, *forgetful) {
	return forgetfulConfig(t, zklock.Config{}, opts...)
}

func forgetfulConfig(t testing.TB, cfg zklock.Config, opts ...zklock.Option) (*zklock.Client, *forgetful) {
	e := newForgetful()
	cfg.Connector, cfg.Root = e, "/locks"
	c, err := zklock.OpenConfig(cfg, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c, e
}
