package zklock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A candidacy of any kind of lock is marked for other clients, in hooks and in its Lock, from its first
// moment to its end, also if the client keeps names. Stats count it apart.
func TestCandidaciesAreMarked(t *testing.T) {
	kinds := map[string]func(c *zklock.Client) zklock.Acquirer{
		"mutex":  func(c *zklock.Client) zklock.Acquirer { return c.Mutex("x") },
		"writer": func(c *zklock.Client) zklock.Acquirer { return c.RWMutex("x").Writer() },
		"permit": func(c *zklock.Client) zklock.Acquirer { return c.Semaphore("x", 1) },
		"all":    func(c *zklock.Client) zklock.Acquirer { return zklock.All(c.Mutex("x"), c.Mutex("y")) },
	}
	for kind, of := range kinds {
		for _, dialect := range []string{"zklock", "curator"} {
			if dialect == "curator" && kind != "mutex" {
				continue
			}
			t.Run(kind+"/"+dialect, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New()
					defer e.Close()
					var acquires, waits []bool
					hooks := zklock.Hooks{
						Acquire: func(ctx context.Context, e zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
							acquires = append(acquires, e.Candidacy)
							return nil, nil
						},
						Wait: func(ctx context.Context, e zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
							waits = append(waits, e.Candidacy, e.Ahead.Candidacy)
							return nil, nil
						},
					}
					cfg := map[string]string{"keep": "1m", "dialect": dialect}
					a, b := connect(t, e.Connector(), cfg, zklock.WithHooks(hooks)), connect(t, e.Connector(), cfg, zklock.WithHooks(hooks))
					leader := mustLock(t)(of(a).Acquire(t.Context(), zklock.WithCandidacy()))
					next := acquiring(t, of(b), t.Context(), zklock.WithCandidacy())
					synctest.Wait()
					time.Sleep(40 * time.Minute)
					plain := acquiring(t, of(b), t.Context())
					synctest.Wait()
					time.Sleep(time.Minute)
					queue, err := a.Contenders(t.Context(), "x")
					if err != nil || len(queue) != 3 || !queue[0].Candidacy || !queue[1].Candidacy || queue[2].Candidacy || queue[0].Kept {
						t.Errorf("%v, %+v", err, queue)
					}
					if s := a.Stats(); s.Held != 1 || s.Leading != 1 || s.LongestHold != 0 {
						t.Errorf("the leader's Stats: %+v", s)
					}
					if s := b.Stats(); s.Waiting != 2 || s.Candidates != 1 || s.LongestWait != time.Minute {
						t.Errorf("the candidate's Stats: %+v", s)
					}
					if n := b.Waiting(); n["x"] != 1 {
						t.Errorf("Waiting: %v", n)
					}
					mustRelease(t, leader)
					led := soon(t, "the candidate leads", next)
					if !led.Candidacy() {
						t.Error("its Lock is not marked")
					}
					time.Sleep(time.Minute)
					mustRelease(t, led)
					last := soon(t, "the other gets the lock", plain)
					if last.Candidacy() {
						t.Error("a Lock without the option is marked")
					}
					if s := b.Stats(); s.Contended != 1 || s.WaitDuration != 2*time.Minute || s.Leading != 0 || s.Candidates != 0 {
						t.Errorf("the candidate's Stats: %+v", s)
					}
					mustRelease(t, last)
					if len(acquires) != 3 || !acquires[0] || !acquires[1] || acquires[2] {
						t.Errorf("Acquire hooks: %v", acquires)
					}
					if len(waits) != 4 || !waits[0] || !waits[1] || waits[2] || !waits[3] {
						t.Errorf("Wait hooks, each with that of the contender ahead: %v", waits)
					}
				})
			})
		}
	}
}

// A candidacy costs the requests of an acquisition without hand-over, and no request more for the reader
// of its queue. Its node is not handed over.
func TestCandidacyCostsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		c := connect(t, e.Connector(), nil)
		use := func(opts ...zklock.AcquireOption) memcontrol.Ops {
			mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context(), opts...))) // the name is known
			return cost(e, func() {
				l := mustLock(t)(c.Mutex("x").Acquire(t.Context(), opts...))
				if _, err := c.Contenders(t.Context(), "x"); err != nil {
					t.Error(err)
				}
				mustRelease(t, l)
			})
		}
		wantCost(t, "a candidacy", use(zklock.WithCandidacy()), use(zklock.WithoutHandover()))
		first := mustLock(t)(c.Mutex("x").Acquire(t.Context(), zklock.WithCandidacy()))
		next := acquiring(t, c.Mutex("x"), t.Context(), zklock.WithCandidacy())
		synctest.Wait()
		mustRelease(t, first)
		if l := soon(t, "the next candidate leads", next); l.Token().Zxid == first.Token().Zxid || c.Stats().Handovers != 0 {
			t.Errorf("the node of %v was handed over: %v", first.Token(), l.Token())
		} else {
			mustRelease(t, l)
		}
	})
}
