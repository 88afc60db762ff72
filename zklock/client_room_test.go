package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// closing returns, by session, the size of the list of paths that a server writes at the session's end.
func closing(t *testing.T, e *memdriver.Ensemble) map[int64]int {
	t.Helper()
	s, err := e.Connector().Connect(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	sizes := make(map[int64]int)
	var walk func(path string)
	walk = func(path string) {
		names, stat, err := s.Children(t.Context(), path)
		if errors.Is(err, driver.ErrNoNode) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		if stat.EphemeralOwner != 0 {
			sizes[stat.EphemeralOwner] += 4 + len(path)
		}
		for _, name := range names {
			walk(strings.TrimSuffix(path, "/") + "/" + name)
		}
	}
	walk("/zklock")
	return sizes
}

// wide returns a name of 512 bytes, which is written as almost three times as many.
func wide(i int) string { return strings.Repeat("ä", 245) + fmt.Sprintf("%022d", i) }

// ZooKeeper's servers stop for good when they end a session whose nodes have longer paths than they can
// read in one transaction. So a session takes no more, whatever takes the place: the next one does, until all
// are full, and then an acquisition fails and says what to do.
func TestSessionHasRoomForSoManyBytes(t *testing.T) {
	for _, c := range []struct {
		what   string
		buffer int // 0: the default
		lock   func(c *zklock.Client, i int) zklock.Acquirer
		opts   []zklock.AcquireOption
		waits  bool // each waits for another client
		many   int
	}{
		{"mutexes", 0, func(c *zklock.Client, i int) zklock.Acquirer { return c.Mutex(wide(i)) }, nil, false, 1300},
		{"mutexes of servers with another limit", 1 << 16, func(c *zklock.Client, i int) zklock.Acquirer { return c.Mutex(wide(i)) }, nil, false, 90},
		{"waiters", 1 << 16, func(c *zklock.Client, i int) zklock.Acquirer { return c.Mutex(wide(i)) }, nil, true, 90},
		{"permits of one name", 1 << 16, func(c *zklock.Client, i int) zklock.Acquirer { return c.Semaphore(wide(0), zklock.MaxPermits) }, nil, false, 90},
		{"readers of one name", 1 << 16, func(c *zklock.Client, i int) zklock.Acquirer { return c.RWMutex(wide(0)).Reader() },
			[]zklock.AcquireOption{zklock.WithoutHandover()}, false, 90},
		{"candidates", 1 << 16, func(c *zklock.Client, i int) zklock.Acquirer { return c.Mutex(wide(i % 7)) },
			[]zklock.AcquireOption{zklock.WithCandidacy()}, true, 90},
		{"sets of names", 1 << 16, func(c *zklock.Client, i int) zklock.Acquirer {
			return zklock.All(c.Mutex(wide(2*i)), c.Mutex(wide(2*i+1)))
		}, nil, false, 45},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				if c.waits {
					rival := connect(t, e.Connector(), map[string]string{"pool_max_sessions": "20"})
					for i := range c.many {
						if _, err := c.lock(rival, i).TryAcquire(t.Context()); err != nil && !errors.Is(err, zklock.ErrNotAcquired) {
							t.Fatal(err)
						}
					}
				}
				others := e.Sessions()
				params, limit := map[string]string{"pool_max_sessions": "2"}, 1<<20-1
				if c.buffer != 0 {
					params["jute_maxbuffer"], limit = strconv.Itoa(c.buffer), c.buffer
				}
				client := connect(t, e.Connector(), params)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				locks, failed := make(chan *zklock.Lock, c.many), make(chan error, c.many)
				for i := range c.many {
					go func() {
						l, err := c.lock(client, i).Acquire(ctx, c.opts...)
						if err != nil {
							failed <- err
						} else {
							locks <- l
						}
					}()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				full := 0
				for id, size := range closing(t, e) {
					if slices.Contains(others, id) {
						continue
					}
					full++
					if size > limit/8*7 || size < limit/4*3 {
						t.Errorf("a session has %d bytes of paths: want no more than %d, and almost as many", size, limit/8*7)
					}
				}
				if full != 2 || len(failed) == 0 || len(failed) == c.many {
					t.Errorf("%d sessions have nodes, and %d of %d acquisitions have failed: want 2 sessions and some failures", full, len(failed), c.many)
				}
				for range len(failed) {
					if err := <-failed; !errors.Is(err, zklock.ErrTooManyWaiters) || !strings.Contains(err.Error(), "pool_max_sessions=2") || !strings.Contains(err.Error(), "jute_maxbuffer=") {
						t.Fatalf("an acquisition failed with %v: want ErrTooManyWaiters and the two keys", err)
					}
				}
				cancel()
				for range len(locks) {
					mustRelease(t, <-locks)
				}
				synctest.Wait()
				mustLock(t)(client.Mutex("another").Acquire(t.Context()))
				for _, s := range closing(t, e) {
					if full--; s > limit/8*7 {
						t.Errorf("after all releases a session has %d bytes", s)
					}
				}
			})
		})
	}
}

// observed calls before when a session is about to be closed.
type observed struct {
	driver.Connector
	before func(id int64)
}

// closer is a session of observed.
type closer struct {
	driver.Session
	before func(id int64)
}

func (o observed) Connect(ctx context.Context, timeout time.Duration) (driver.Session, error) {
	s, err := o.Connector.Connect(ctx, timeout)
	if err != nil {
		return nil, err
	}
	return closer{s, o.before}, nil
}

func (c closer) Close(ctx context.Context) error {
	c.before(c.ID())
	return c.Session.Close(ctx)
}

// The nodes of a full session are deleted in groups before Close ends it, so that the end is a small
// transaction. An operator's delete of one of them in that moment makes no difference.
func TestCloseDeletesManyNodesBeforeTheSession(t *testing.T) {
	for _, c := range []struct{ many, left int }{
		{20, 20},
		{500, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New()
			var left []int
			client := connect(t, observed{e.Connector(), func(int64) { left = append(left, nodes(e)) }}, nil)
			for i := range c.many {
				mustLock(t)(client.Mutex(wide(i)).Acquire(t.Context()))
			}
			other := connect(t, e.Connector(), nil)
			found, err := other.Contenders(t.Context(), wide(0))
			if err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
			if err := other.Break(t.Context(), wide(0), found[0].Node); err != nil {
				t.Fatal(err)
			}
			ops := cost(e, func() { client.Close() })
			if want := max(0, c.left-1); !slices.Equal(left, []int{want}) {
				t.Errorf("%d names: the ends of sessions delete %v nodes, want %d", c.many, left, want)
			}
			if most := c.many * 1700 / (16 << 10); ops.Multis > most || ops.Deletes > most {
				t.Errorf("%d names: Close cost %+v, want at most %d transactions", c.many, ops, most)
			}
		})
	}
}

// A full session takes a place that replaces another one: one transaction deletes and creates. And names that a
// client keeps make room for others.
func TestFullSessionGoesOn(t *testing.T) {
	const most = 1 << 16 / 8 * 7 / 1575 // names that a session has room for
	full := func(t *testing.T, c *zklock.Client, uses int) (locks []*zklock.Lock) {
		for i := range most {
			for range uses {
				mustRelease(t, mustLock(t)(c.Mutex(wide(i)).Acquire(t.Context())))
			}
			if uses == 0 {
				locks = append(locks, mustLock(t)(c.Mutex(wide(i)).Acquire(t.Context())))
			}
		}
		return locks
	}
	t.Run("places that are replaced", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, memdriver.New().Connector(), map[string]string{"jute_maxbuffer": "65536"})
			locks := full(t, c, 0)
			if _, err := c.Mutex(wide(most)).Acquire(t.Context()); !errors.Is(err, zklock.ErrTooManyWaiters) {
				t.Fatalf("acquire: %v, want ErrTooManyWaiters", err)
			}
			const callers = 10
			got := make(chan error, callers)
			for range callers {
				go func() {
					l, err := c.Mutex(wide(0)).Acquire(t.Context())
					if err == nil {
						time.Sleep(time.Second) // longer than handover_time
						err = l.Release(t.Context())
					}
					got <- err
				}()
			}
			time.Sleep(time.Second)
			mustRelease(t, locks[0])
			for range callers {
				if err := <-got; err != nil {
					t.Errorf("a goroutine that waited: %v", err)
				}
			}
		})
	})
	t.Run("names that are kept", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := connect(t, memdriver.New().Connector(), map[string]string{"jute_maxbuffer": "65536", "keep": "1h"})
			full(t, c, 2)
			if n := c.Stats().Kept; n != most {
				t.Fatalf("%d names are kept, want %d", n, most)
			}
			mustLock(t)(c.Mutex(wide(most)).Acquire(t.Context()))
			if n := c.Stats().Kept; n != most-1 {
				t.Errorf("%d names are kept after another one was acquired, want %d", n, most-1)
			}
		})
	})
}

// Operators lower the limit of their servers, and URLs do not say so. The creates of a session with many nodes are all
// small, so they show nothing. A session asks the servers before it has more nodes than servers with a low limit can
// read at its end, few times, and has no more than they read. That is forgotten, slowly.
func TestSessionAsksTheServersBeforeItGrows(t *testing.T) {
	for _, c := range []struct {
		what        string
		limit       int // of the servers
		asked, cuts int
		txn         bool // the program makes the znodes by transactions
	}{
		{"the default limit", 1<<20 - 1, 3, 0, false},
		{"a low limit", 1 << 16, 4, 3, false},
		{"ephemeral znodes of the program", 1 << 16, 4, 3, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New(memdriver.WithLatency(time.Millisecond))
				limit, asked, cuts := c.limit, 0, 0
				narrow := faultdriver.If("narrow", func(op faultdriver.Op) bool {
					if op.Kind != faultdriver.Get || len(op.Paths[0]) < 16<<10 {
						return false
					}
					if asked++; len(op.Paths[0]) > limit {
						cuts++
						return true
					}
					return false
				}, faultdriver.Fail(driver.ErrConnLoss))
				client := connect(t, faultdriver.Wrap(e.Connector(), narrow), map[string]string{"pool_max_sessions": "1"})
				l := mustLock(t)(client.Mutex("first").Acquire(t.Context()))
				next, most := 0, c.limit/8*7
				add := func() error {
					next++
					if c.txn {
						_, err := ephemerals{l, t, client}.create(next, driver.Ephemeral)
						return err
					}
					_, err := client.Mutex(wide(next)).Acquire(t.Context())
					return err
				}
				if c.txn {
					most /= 2
				}
				var err error
				for err == nil && next < 600 {
					err = add()
				}
				if err != nil && (!errors.Is(err, zklock.ErrTooManyWaiters) && !errors.Is(err, driver.ErrTooLarge) || !strings.Contains(err.Error(), "jute")) {
					t.Error(err)
				}
				for range 10 {
					_ = add() // asks no more
				}
				for _, size := range closing(t, e) {
					if size > most || size < most*7/8 {
						t.Errorf("the session has %d bytes of paths, want almost %d", size, most)
					}
				}
				if asked != c.asked || cuts != c.cuts {
					t.Errorf("the servers were asked %d times, and have cut %d connections; want %d and %d", asked, cuts, c.asked, c.cuts)
				}
				if c.cuts == 0 {
					return
				}
				limit = 1<<20 - 1 // an operator has raised it
				time.Sleep(2 * time.Hour)
				if err := add(); err != nil {
					t.Errorf("after the limit was raised: %v", err)
				}
			})
		})
	}
}

// All callers share the question whether the servers read more, and those that leave do not end it.
func TestCallersThatLeaveWhileTheServersAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		asked := 0
		slow := faultdriver.If("slow", func(op faultdriver.Op) bool {
			long := op.Kind == faultdriver.Get && len(op.Paths[0]) > 16<<10
			if long {
				asked++
			}
			return long
		}, faultdriver.Delay(time.Second))
		client := connect(t, faultdriver.Wrap(e.Connector(), slow), map[string]string{"pool_max_sessions": "1"})
		const fit = 18 // of 28,672 bytes
		for i := range fit {
			mustLock(t)(client.Mutex(wide(i)).Acquire(t.Context()))
		}
		for i := range 20 {
			for j := range 10 {
				go func() {
					_, err := client.Mutex(wide(1000+10*i+j)).Acquire(t.Context(), zklock.WithWait(20*time.Millisecond))
					if !errors.Is(err, zklock.ErrNotAcquired) || errors.Is(err, zklock.ErrUnavailable) {
						t.Errorf("a caller that leaves: %v, want ErrNotAcquired", err)
					}
				}()
			}
			time.Sleep(40 * time.Millisecond)
		}
		mustLock(t)(client.Mutex("patient").Acquire(t.Context()))
		mustLock(t)(client.Mutex(wide(fit)).Acquire(t.Context()))
		if asked != 1 {
			t.Errorf("the servers were asked %d times, want once", asked)
		}
	})
}
