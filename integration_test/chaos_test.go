//go:build linux

package integration_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// chaos is one run of the chaos test: workers that use an ensemble, each through separate
// proxies, and faults.
type chaos struct {
	t        *testing.T
	ensemble *ensemble.Ensemble
	root     string
	raw      *zk.Conn // not behind any proxy
	kinds    []kind   // the kinds of fault that this run makes
	victims  []*victim
	strokes  []*stroke
	denied   []string // the kinds of fault that need rights this machine does not give
	mild     bool     // the kinds of fault need not take locks away

	as func(url string) string // adds to the workers' URL how they authenticate; nil: they do not
}

// victim is a worker, with the proxies that carry faults to it.
type victim struct {
	index   int
	process *process
	links   []*proxy.Proxy // to each server

	mu         sync.Mutex
	newest     chaosReport // guarded by mu
	idle       bool        // guarded by mu
	ended      bool        // guarded by mu
	violations []string    // guarded by mu
}

const (
	chaosWorkers = 3

	// chaosProgress is the time between two lines of progress in the test's log.
	chaosProgress = 10 * time.Second
)

// TestChaos starts processes that protect registers with locks of all kinds, on three real
// servers. It kills, stops, cuts off and slows down servers and clients while they work.
// ZKLOCK_CHAOS is the length of the run, and ZKLOCK_SEED repeats a schedule. If ZKLOCK_FAULTS
// is set, only the kinds of fault whose names match it are used.
func TestChaos(t *testing.T) {
	length := chaosLength(t)
	ensemble.Require(t)
	seed := chaosSeed(t)
	c := &chaos{t: t, root: rootOf(t), kinds: chosenKinds(t)}
	t.Logf("%d of %d kinds of fault for %v, ZKLOCK_SEED=%d", len(c.kinds), len(kinds), length, seed)
	c.run(seed, length, ensemble.Config{Servers: 3, TickTime: chaosTick, SyncLimit: chaosSyncLimit, Extra: []string{wholeSync}})
}

// chaosSeed returns the seed of a run's schedule.
func chaosSeed(t *testing.T) uint64 {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("ZKLOCK_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return seed
}

// run runs the workers on an ensemble, makes faults, and judges what the workers have
// recorded. With a length of 0 it makes each kind of fault once.
func (c *chaos) run(seed uint64, length time.Duration, config ensemble.Config) {
	t := c.t
	c.ensemble = ensemble.Start(t, config)
	c.raw = dialRaw(t, c.ensemble.Hosts(), 10*time.Second)
	const znode = "/register"
	if _, err := c.raw.Create(znode, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	registers, url := serveRegisters(t)
	for i := range chaosWorkers {
		c.startVictim(i, url, znode)
	}
	for _, v := range c.victims {
		v.process.await("ready")
		v.process.start()
	}
	var watching sync.WaitGroup
	for _, v := range c.victims {
		watching.Go(v.watch)
	}
	c.torment(rand.New(rand.NewPCG(seed, 0)), length)

	for _, v := range c.victims {
		v.process.start() // the second line: the worker stops
	}
	c.must(c.until("all workers are idle", func() bool { return c.all(func(v *victim) bool { return v.idle }) }))
	c.nothingLeft()
	for _, v := range c.victims {
		v.process.start() // the third line: the worker closes its client
	}
	c.must(c.until("all workers have ended", func() bool { return c.all(func(v *victim) bool { return v.ended }) }))
	watching.Wait()
	c.judge(registers, znode)
}

// startVictim starts a worker with proxies between it and the servers.
func (c *chaos) startVictim(i int, registers, znode string) {
	v := &victim{index: i}
	var hosts []string
	for _, s := range c.ensemble.Servers() {
		p, err := proxy.New(s.Addr())
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() { _ = p.Close() })
		v.links = append(v.links, p)
		hosts = append(hosts, p.Addr())
	}
	params := quick("session_timeout", chaosSession.String(), "tick_time", chaosTick.String())
	if i%2 == 1 {
		params.Set("keep", "1s")
	}
	url := ensemble.URL(strings.Join(hosts, ","), c.root, params)
	if c.as != nil {
		url = c.as(url)
	}
	v.process = startWorker(c.t, task{
		Role: "chaos",
		URL:  url,
		Log:  filepath.Join(c.t.TempDir(), fmt.Sprint("journal-", i)),
		Chaos: &chaosTask{Index: i, Of: chaosWorkers, Registers: registers, Znode: znode,
			Hosts: hosts, Timeout: chaosSession},
	})
	c.victims = append(c.victims, v)
}

// watch follows the worker's reports until it has ended.
func (v *victim) watch() {
	for r := range v.process.reports {
		v.mu.Lock()
		if r.Chaos != nil {
			v.newest = *r.Chaos
		}
		switch r.What {
		case "idle":
			v.idle = true
		case "violation", "error":
			v.violations = append(v.violations, r.Err)
		case "done":
			v.ended = true
		}
		v.mu.Unlock()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ended {
		v.violations = append(v.violations, "it ended too early: "+v.process.stderr.String())
		v.idle, v.ended = true, true
	}
}

// chosenKinds returns the kinds of fault that ZKLOCK_FAULTS matches.
func chosenKinds(t *testing.T) []kind {
	pattern, err := regexp.Compile(os.Getenv("ZKLOCK_FAULTS"))
	if err != nil {
		t.Fatalf("ZKLOCK_FAULTS: %v", err)
	}
	some := slices.DeleteFunc(slices.Clone(kinds), func(k kind) bool { return !pattern.MatchString(k.name) })
	if len(some) == 0 {
		t.Fatalf("ZKLOCK_FAULTS=%s matches no kind of fault", pattern)
	}
	return some
}

// torment makes faults: all kinds in a random order, and then again until the time is over.
// Each fault begins when the workers have recovered from the one before.
func (c *chaos) torment(rng *rand.Rand, length time.Duration) {
	begun := time.Now()
	c.must(c.recovered(&stroke{lifted: monotonic()})) // the workers work before the first fault
	told := begun
	for round := 0; round == 0 || time.Since(begun) < length; round++ {
		for _, i := range rng.Perm(len(c.kinds)) {
			if round > 0 && time.Since(begun) > length {
				break
			}
			s := &stroke{kind: c.kinds[i].name, victim: c.victims[rng.IntN(len(c.victims))], rng: rng, struck: monotonic()}
			c.strokes = append(c.strokes, s)
			err := c.kinds[i].strike(c, s)
			switch {
			case errors.Is(err, syscall.EPERM):
				c.t.Logf("%s: not allowed on this machine: %v", s.kind, err)
				c.denied = append(c.denied, s.kind)
				s.lift()
			case err != nil:
				c.t.Fatalf("%s: %v", s.kind, err)
			}
			if err := c.recovered(s); err != nil {
				c.queues()
				c.stacks()
				c.t.Fatal(err)
			}
			if time.Since(told) > chaosProgress {
				told = time.Now()
				c.progress(time.Since(begun))
			}
		}
	}
}

// progress logs how far the run is.
func (c *chaos) progress(after time.Duration) {
	cycles, lost, violations := 0, 0, 0
	for _, v := range c.victims {
		v.mu.Lock()
		cycles += v.newest.Cycles
		lost += v.newest.Lost
		violations += len(v.violations)
		v.mu.Unlock()
	}
	c.t.Logf("%4.0fs: %d faults, the last one: %s; %d turns, %d locks lost, %d violations",
		after.Seconds(), len(c.strokes), c.strokes[len(c.strokes)-1].kind, cycles, lost, violations)
}

// recovered waits until every goroutine of every worker has completed a turn
// that began after the fault.
func (c *chaos) recovered(s *stroke) error {
	return c.until("all workers have recovered from: "+s.kind, func() bool {
		return c.all(func(v *victim) bool { return v.newest.Since > s.lifted })
	})
}

// stacks makes the workers that have not ended print the stacks of their goroutines and
// end.
func (c *chaos) stacks() {
	for _, v := range c.victims {
		_ = v.process.cmd.Process.Signal(syscall.SIGQUIT) // it may have ended
	}
	if err := c.until("all workers have printed their stacks", func() bool { return c.all(func(*victim) bool { return false }) }); err != nil {
		c.t.Error(err)
	}
	for _, v := range c.victims {
		v.mu.Lock()
		c.t.Logf("worker %d: %s", v.index, strings.Join(v.violations, "\n"))
		v.mu.Unlock()
	}
}

// all reports whether a condition holds for every worker that has not ended.
func (c *chaos) all(holds func(*victim) bool) bool {
	for _, v := range c.victims {
		v.mu.Lock()
		ok := holds(v) || v.ended
		v.mu.Unlock()
		if !ok {
			return false
		}
	}
	return true
}

// neighbour returns the worker that shares the lock which the victim holds for long.
func (c *chaos) neighbour(v *victim) *victim {
	return c.victims[(v.index+len(c.victims)-1)%len(c.victims)]
}

// until polls a condition until it holds, or patience is over.
func (c *chaos) until(what string, holds func() bool) error {
	for giveUp := time.Now().Add(patience); !holds(); c.pause(20 * time.Millisecond) {
		if time.Now().After(giveUp) {
			return fmt.Errorf("not within %v: %s", patience, what)
		}
	}
	return nil
}

func (c *chaos) pause(d time.Duration) { <-time.After(d) }

func (c *chaos) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// nothingLeft checks, while all clients are still open, that no contender is left in any
// queue, and no watch on any server.
func (c *chaos) nothingLeft() {
	running := slices.DeleteFunc(c.ensemble.Servers(), func(s *ensemble.Server) bool { return !s.Running() })
	for _, s := range running {
		raw := dialRaw(c.t, s.Addr(), 10*time.Second)
		var left []string
		err := c.until("no contender is left", func() (done bool) {
			left, done = c.contenders(raw)
			return done && len(left) == 0
		})
		if err != nil {
			c.t.Errorf("%v: %v: %q", s, err, left)
			c.queues()
		}
	}
	watches := make([]float64, len(running))
	err := c.until("no watch is left", func() bool {
		for i, s := range running {
			stats, err := s.Stats()
			watches[i] = stats["watch_count"]
			if err != nil {
				watches[i] = -1
			}
		}
		return slices.Max(watches) == 0 && slices.Min(watches) == 0
	})
	if err != nil {
		c.t.Errorf("%v: %v", err, watches)
	}
}

// contenders returns all nodes in all queues, and whether all queues could be listed.
func (c *chaos) contenders(raw *zk.Conn) (nodes []string, all bool) {
	names, _, err := raw.Children(c.root)
	if err != nil {
		return nil, false
	}
	for _, name := range names {
		queue, _, err := raw.Children(c.root + "/" + name)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, false
		}
		for _, node := range queue {
			nodes = append(nodes, name+"/"+node)
		}
	}
	return nodes, true
}
