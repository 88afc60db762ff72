package zklock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// oneNumber is a client of a version that knows one number of permits: where it finds another one ahead, or would hold and finds one
// behind, it fails. It looks at the queue again and again in place of watching it.
type oneNumber struct {
	s      driver.Session
	number int
	serial uint64
	held   string // the path of the node with which it holds; "": it does not
}

const fleetDir = "/zklock/s"

// acquire reports whether the client has a permit. One that it holds is replaced in the transaction that creates the new node, and
// the count of children grants that one then, as it did in that version.
func (o *oneNumber) acquire(ctx context.Context) (held bool, err error) {
	o.serial++
	kind := queue.Kind{Mode: queue.Permit, Permits: o.number}
	prefix := queue.Default.Prefix(queue.GUID{Session: o.s.ID(), Serial: o.serial}, kind)
	data := queue.Data{Mode: "permit", Since: time.Now().UnixMilli()}
	var ops []driver.Op
	replaces := o.held != ""
	if replaces {
		ops = append(ops, driver.DeleteOp(o.held, driver.AnyVersion))
	}
	ops = append(ops, driver.CreateOp(fleetDir+"/"+prefix, data.Encode(), driver.EphemeralSequential, driver.OpenACL(driver.PermAll)), driver.SetOp(fleetDir, nil, driver.AnyVersion))
	results, err := o.s.Multi(ctx, ops)
	if err != nil {
		return false, err
	}
	own := results[len(ops)-2].Path
	o.held = ""
	if replaces && int(results[len(ops)-1].Stat.NumChildren) <= o.number {
		o.held = own
		return true, nil
	}
	for {
		list, _, err := o.s.Children(ctx, fleetDir)
		if err != nil {
			return false, err
		}
		var q []queue.Node
		for _, name := range list {
			if n, _, ok := queue.Default.Parse(name); ok {
				q = append(q, n)
			}
		}
		queue.Sort(q)
		self, other := -1, false
		for i, n := range q {
			if strings.HasSuffix(own, n.Name) {
				self = i
			}
			other = other || n.Kind.Permits != o.number && (self < 0 || self < o.number)
		}
		switch {
		case self < 0:
			return false, errors.New("its node is gone")
		case other:
			return false, o.s.Delete(ctx, own, driver.AnyVersion)
		case self < o.number:
			data.Granted = true
			_, err := o.s.Set(ctx, own, data.Encode(), driver.AnyVersion)
			o.held = own
			return true, err
		}
		time.Sleep(3 * time.Millisecond)
	}
}

func (o *oneNumber) release(ctx context.Context) error {
	path := o.held
	o.held = ""
	return o.s.Delete(ctx, path, driver.AnyVersion)
}

// In a fleet, some clients know one number of permits only, and fail where they meet another. Those that know the rule never
// fail and never wait in vain. No more hold than any holder has asked for, of whatever version.
func TestPermitsInAFleetOfTwoVersions(t *testing.T) {
	const rounds = 15
	granted, refused, kept := 0, 0, 0
	seeds := uint64(16)
	if corekit.Race && !long.On() {
		seeds = 4 // each takes ten times as long
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithLatency(time.Millisecond))
			in := &numbers{grants: map[int]int{}}
			hold := func(number int, rng *rand.Rand) {
				if err := in.enter(number); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				time.Sleep(time.Duration(5+rng.IntN(30)) * time.Millisecond)
				in.leave(number)
			}
			var wg sync.WaitGroup
			for k := range 4 {
				c, number := connect(t, e.Connector(), nil), 2+k%2
				for g := range 3 {
					rng := rand.New(rand.NewPCG(seed, uint64(k*3+g)))
					wg.Go(func() {
						for range rounds {
							l, err := c.Semaphore("s", number).Acquire(t.Context(), zklock.WithWait(time.Hour))
							if err != nil {
								t.Errorf("seed %d: %v", seed, err)
								continue
							}
							hold(number, rng)
							mustRelease(t, l)
							time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
						}
					})
				}
			}
			for k := range 3 {
				s, err := e.Connector().Connect(t.Context(), time.Minute)
				if err != nil {
					t.Fatal(err)
				}
				o, rng := &oneNumber{s: s, number: 2 + k%2}, rand.New(rand.NewPCG(seed, uint64(100+k)))
				wg.Go(func() {
					defer s.Close(t.Context())
					for range 4 * rounds {
						had := o.held != ""
						held, err := o.acquire(t.Context())
						if err != nil && !errors.Is(err, driver.ErrNoNode) {
							t.Errorf("seed %d: %v", seed, err)
							return
						}
						in.mu.Lock()
						if held {
							granted++
						} else {
							refused++
						}
						if held && had {
							kept++
						}
						in.mu.Unlock()
						if held {
							hold(o.number, rng)
							if rng.IntN(2) == 0 {
								if err := o.release(t.Context()); err != nil {
									t.Error(err)
								}
							}
						}
						if o.held == "" {
							time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
						}
					}
				})
			}
			began := time.Now()
			wg.Wait()
			if took := time.Since(began); took > time.Minute {
				t.Errorf("seed %d: it took %v", seed, took)
			}
		})
	}
	t.Logf("clients of one number: %d permits, %d of them by replacement, and refused %d times", granted, kept, refused)
	if granted == 0 || refused == 0 || kept == 0 {
		t.Error("want some of each")
	}
}
