//go:build linux

package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/contrib/locktest"
	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/internal/testkit/census"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// The servers of the chaos test expire a session after three seconds. A server that is cut
// off from its leader notices after six. So for about two seconds it goes on answering a
// client whose locks other clients have already got.
const (
	chaosTick      = 500 * time.Millisecond
	chaosSyncLimit = 12
	chaosSession   = 3 * time.Second
)

// chaosWorkers is the number of processes. The second one keeps names.
const chaosWorkers = 3

// chaosClients is how many acquisitions of a process are under way at a time, in addition to those of the locks that are held for long.
const chaosClients = 12

// wholeSync makes the leader send all its data to a server that returns. By default the leader
// sends only the transactions that the server has missed. Some releases of ZooKeeper then fail
// to write a few of these to the server's disk (ZOOKEEPER-4785, fixed in 3.8.4 and 3.9.2;
// ZOOKEEPER-4925, in 3.9.3 only). After its next restart such a server answers its clients for
// ever from data that no other server has.
const wholeSync = "forceSnapshotSync=true"

// chaos is one run of the chaos test: locktest runs workers with locks of all kinds on an ensemble, and makes faults.
type chaos struct {
	t        testing.TB
	ensemble *ensemble.Ensemble
	servers  *breakable
	root     string
	raw      *zk.Conn                                       // not behind any proxy
	kinds    []fault.Kind                                   // the kinds of fault that this run makes
	own      map[fault.Kind]func(ctx context.Context) error // makes those of this run that locktest does not have
	denied   []fault.Kind                                   // those that need rights this machine does not give
	mild     bool                                           // the kinds of fault need not take locks away
	shipped  bool                                           // servers and clients have the settings that they are shipped with
	distance time.Duration                                  // see locktest.Config.Distance

	as func(url string) string // adds to the workers' URL how they authenticate; nil: they do not
}

// TestChaos starts processes that protect registers with locks of all kinds, on three real
// servers. Locktest kills, stops, cuts off and slows down servers and clients while they work, and judges exclusion, tokens,
// registers, and the recovery of each client from each fault. The rest is judged here: writes by Lock.Txn, classes of errors,
// reasons of losses, what is left behind, and a client that trusts its connection, which must overlap with another.
// ZKLOCK_CHAOS is the length of the run, and ZKLOCK_SEED repeats a schedule. If ZKLOCK_FAULTS
// is set, only the kinds of fault whose names match it are used. ZKLOCK_DISTANCE puts the processes at a distance from the servers.
func TestChaos(t *testing.T) {
	length := chaosLength(t)
	ensemble.Require(t)
	seed := chaosSeed(t)
	c := &chaos{t: t, root: rootOf(t), kinds: chosenKinds(t), distance: chaosDistance(t)}
	t.Logf("%d of %d kinds of fault for %v, ZKLOCK_SEED=%d", len(c.kinds), len(chaosKinds()), length, seed)
	c.run(seed, length, ensemble.Config{Servers: 3, TickTime: chaosTick, SyncLimit: chaosSyncLimit, Extra: []string{wholeSync}})
}

// TestChaosAsShipped makes each fault once, under the settings that users have: clients with the defaults, servers as ZooKeeper's
// documentation sets them up. Each fault outlasts a session, so it takes a quarter of an hour; ZKLOCK_SHIPPED asks for it.
func TestChaosAsShipped(t *testing.T) {
	if !census.AsShipped() {
		t.Skip("sessions of 30 s expire, one after the other: set ZKLOCK_SHIPPED")
	}
	ensemble.Require(t)
	seed := chaosSeed(t)
	c := &chaos{t: t, root: rootOf(t), kinds: chosenKinds(t), distance: chaosDistance(t), shipped: true}
	t.Logf("%d of %d kinds of fault once, ZKLOCK_SEED=%d", len(c.kinds), len(chaosKinds()), seed)
	config := ensemble.Shipped(3)
	config.Extra = []string{wholeSync}
	c.run(seed, 0, config)
}

// What servers and clients are shipped with.
const (
	shippedTick    = 2 * time.Second
	shippedSession = 30 * time.Second
)

// times returns the servers' tick and the clients' session timeout.
func (c *chaos) times() (tick, session time.Duration) {
	if c.shipped {
		return shippedTick, shippedSession
	}
	return chaosTick, chaosSession
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

// chaosDistance returns how far the farthest server is from a process.
func chaosDistance(t *testing.T) (d time.Duration) {
	if s := os.Getenv("ZKLOCK_DISTANCE"); s != "" {
		var err error
		if d, err = time.ParseDuration(s); err != nil {
			t.Fatalf("ZKLOCK_DISTANCE: %v", err)
		}
	}
	return d
}

// chaosKinds are locktest's faults, but for those of clocks, which these servers and programs in Go cannot have.
func chaosKinds() []fault.Kind {
	return slices.DeleteFunc(slices.Clone(fault.Kinds), func(k fault.Kind) bool { return k == fault.JumpClient || k == fault.JumpServer })
}

// chosenKinds returns the kinds of fault that ZKLOCK_FAULTS matches.
func chosenKinds(t *testing.T) []fault.Kind {
	pattern, err := regexp.Compile(os.Getenv("ZKLOCK_FAULTS"))
	if err != nil {
		t.Fatalf("ZKLOCK_FAULTS: %v", err)
	}
	some := slices.DeleteFunc(chaosKinds(), func(k fault.Kind) bool { return !pattern.MatchString(string(k)) })
	if len(some) == 0 {
		t.Fatalf("ZKLOCK_FAULTS=%s matches no kind of fault", pattern)
	}
	return some
}

// schedule has all kinds of faults in a random order, and then again until the time is over. Of the one in which a client that trusts its
// connection overlaps with another there are three: on a busy machine that client may miss one. Each outlasts a session, so that it takes
// locks away. In two of three cases, and the first time, a client that cannot flee is on the server that a fault strikes.
func (c *chaos) schedule(seed uint64, length time.Duration) (faults []fault.Fault) {
	const recovery = time.Second // about as long as a recovery takes
	rng := rand.New(rand.NewPCG(seed, 0))
	tick, session := c.times()
	kinds := slices.Clone(c.kinds)
	if slices.Contains(kinds, fault.CutFollower) && !c.shipped {
		kinds = append(kinds, fault.CutFollower, fault.CutFollower)
	}
	for round, total := 0, time.Duration(0); round == 0 || total < length; round++ {
		for _, i := range rng.Perm(len(kinds)) {
			if round > 0 && total > length {
				break
			}
			f := fault.Fault{Kind: kinds[i], Victim: rng.IntN(chaosWorkers), Lasts: session + 4*tick}
			switch f.Kind {
			case fault.Blink, fault.Rolling:
				f.Lasts = 0
			case fault.ResetClient, fault.KillLeader, fault.KillServer, fault.StopLeader:
				f.Lasts = time.Duration(rng.Int64N(int64(session)))
			case fault.CutFollower:
			default:
				f.Lasts = session + 2*tick + time.Duration(rng.Int64N(int64(session)/3))
			}
			if confined := f.Kind.OfServer() && (round == 0 || rng.IntN(3) > 0); confined {
				f.Confined = 1 + rng.IntN(chaosWorkers)
			}
			faults = append(faults, f)
			total += f.Lasts + recovery
		}
	}
	return faults
}

// chaosLocks are what the clients of a worker ask for, each as often as the others.
func chaosLocks() (locks []locktest.Lock) {
	for _, l := range []struct {
		locktest.Lock
		n int
	}{
		{locktest.Lock{Name: "mutex"}, 2},
		{locktest.Lock{Name: chaosZnode}, 2},
		{locktest.Lock{Name: chaosElection}, 1},
		{locktest.Lock{Name: "rw"}, 1},
		{locktest.Lock{Name: "rw", Shared: true}, 2},
		{locktest.Lock{Name: "permits", Permits: 2}, 3},
		{locktest.Lock{Name: "several-0"}, 1},
		{locktest.Lock{Name: "several-2"}, 1},
		{locktest.Lock{Name: "several-0+several-1"}, 1},
		{locktest.Lock{Name: "several-2+several-1"}, 1},
		{locktest.Lock{Name: "several-2+several-0"}, 1},
	} {
		locks = append(locks, slices.Repeat([]locktest.Lock{l.Lock}, l.n)...)
	}
	return locks
}

// run runs the workers on an ensemble, makes faults, and judges the history. With a length of 0 it makes each kind of
// fault once.
func (c *chaos) run(seed uint64, length time.Duration, config ensemble.Config) {
	t := repeatErrors(c.t)
	c.t = t
	c.ensemble = ensemble.Start(t, config)
	c.servers = newBreakable(c.ensemble)
	c.raw = dialRaw(t, c.ensemble.Hosts(), 10*time.Second)
	const znode = "/register"
	znodes := []string{znode}
	for i := range chaosWorkers {
		znodes = append(znodes, path.Dir(chaosTrustPath(fmt.Sprint(chaosControl, i))))
	}
	for _, path := range znodes {
		if _, err := c.raw.Create(path, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	c.allow()
	tick, session := c.times()
	settings := quick("session_timeout", session.String(), "tick_time", tick.String())
	if c.shipped {
		settings = nil
	}
	url := ensemble.URL(chaosHosts, c.root, settings)
	if c.as != nil {
		url = c.as(url)
	}
	dir := t.TempDir()
	k := task{Role: "chaos", URL: withCanary(url), Log: filepath.Join(dir, "journal"), Chaos: &chaosTask{Znode: znode, Timeout: session}}
	text, err := json.Marshal(k)
	c.must(err)
	self, err := os.Executable()
	c.must(err)
	stderr, err := os.Create(filepath.Join(dir, "stderr"))
	c.must(err)
	defer stderr.Close()
	events, err := locktest.Run(t.Context(), locktest.Config{
		Worker: []string{self}, Others: [][]string{{self, "keep"}}, Env: []string{workerEnv + "=" + string(text)},
		Ensemble: c.servers, Distance: c.distance, Spread: true, Workers: chaosWorkers, Clients: chaosClients, Locks: chaosLocks(),
		Long: []string{"long-0", "long-1", "long-2", chaosControl + "0", chaosControl + "1", chaosControl + "2"},
		TTL:  session, Hold: 4 * time.Millisecond, Think: 8 * time.Millisecond,
		Seed: seed, Faults: c.schedule(seed, length), Own: c.own, Recover: patience, Settle: patience, Recheck: true,
		Stuck: c.queues, Idle: func(context.Context) error { c.nothingLeft(); return nil },
		Stderr: stderr, Progress: &chaosLog{t: t},
	})
	said, unread := os.ReadFile(stderr.Name())
	c.must(unread)
	search("a worker's stderr", said)
	defer func() {
		if t.Failed() {
			t.Logf("the workers have written:\n%s", said)
		}
	}()
	c.must(err)
	c.judge(events, znode, k.Log)
}

// allow takes away the kinds of fault that this machine does not allow.
func (c *chaos) allow() {
	i := slices.Index(c.kinds, fault.SlowDisk)
	if i < 0 {
		return
	}
	err := stallLog(c.ensemble.Server(0).PID(), time.Millisecond)
	if errors.Is(err, syscall.EPERM) {
		c.t.Logf("%s: not allowed on this machine: %v", fault.SlowDisk, err)
		c.kinds, c.denied = slices.Delete(slices.Clone(c.kinds), i, i+1), append(c.denied, fault.SlowDisk)
	}
}

// chaosLog has the progress of a run in the test's log.
type chaosLog struct{ t testing.TB }

func (l *chaosLog) Write(p []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(p), "\n"))
	return len(p), nil
}

// until polls a condition until it holds, or patience is over.
func (c *chaos) until(what string, holds func() bool) error {
	for giveUp := time.Now().Add(patience); !holds(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(giveUp) {
			return fmt.Errorf("not within %v: %s", patience, what)
		}
	}
	return nil
}

func (c *chaos) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}
