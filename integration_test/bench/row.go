package main

import (
	"fmt"
	"os/exec"
	"strconv"

	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

// Contestants. The others are compared with the first one.
const (
	ours     = "zklock"
	zkLock   = "zk.Lock"
	keeping  = "zklock, keep=2s"
	twice    = "zklock, 2 sessions"
	fourfold = "zklock, 4 sessions"

	// Each goroutine has a client.
	zklockEach = "zklock, a client each"
	zkLockEach = "zk.Lock, a session each"

	floor     = "create+delete" // one create and one delete a cycle, without a lock
	defaults  = "zklock, default settings"
	inMemory  = "zklock, in memory" // see roundTrip
	curator   = "Curator"
	kazooLock = "kazoo"
	etcd      = "etcd"
	redsync   = "redsync"
)

// inside are the contestants that are part of this program.
var inside = []string{ours, keeping, twice, fourfold, defaults, inMemory, zklockEach, zkLock, zkLockEach, floor}

// foreign are the contestants in other languages that are clients of ZooKeeper. Each has a
// function that prepares its worker in a folder, and returns a function that makes the
// worker's command.
var foreign = map[string]func(dir, hosts string) (start func() (*exec.Cmd, error), version string, err error){
	curator:   compileCurator,
	kazooLock: unpackKazoo,
}

// row is one workload with its contestants and its targets.
type row struct {
	name       string
	kind       string // one of package worker's kinds, such as worker.Mutex
	names      string // one of package worker's kinds of names, such as worker.Own
	processes  int    // of each contestant
	goroutines int    // of each process
	once       bool   // each goroutine acquires once a turn, instead of for the turn's length
	held       bool   // another process holds the one name all the time
	relay      int    // if not 0, two processes use one name in turn: the first one so often, and then the second one once
	wait       bool   // one process holds the one name, and the others wait: what they write meanwhile is counted
	killed     bool   // the holder is killed: see failover
	tidy       bool   // the znodes that are left behind are counted
	load       *load  // if not nil, so many goroutines are an overload

	lead    string   // the first contestant, with which the others are compared; "" for zklock
	who     []string // the contestants in addition to the first one
	peers   []string // contestants that take part only with -peers, or Curator and kazoo with -all
	targets []target
}

// target is a limit for a figure of zklock's, or for its ratio to another contestant's.
type target struct {
	of      string  // "" for zklock, or a way in which a killed holder is followed
	figure  string  // the key of the figure
	against string  // the other contestant; "" if the target is about zklock's figure alone
	inverse bool    // the ratio is the other contestant's figure by zklock's
	least   float64 // the lower limit; 0 means that there is none
	most    float64 // the upper limit; used if least is 0
	unit    string  // the figure's name in the tables
}

func (t target) met(v float64) bool {
	if t.least > 0 {
		return v >= t.least
	}
	return v <= t.most
}

func (t target) String() string {
	x := ""
	if t.against != "" {
		x = "x"
	}
	if t.least > 0 {
		return fmt.Sprintf("≥%.4g%s", t.least, x)
	}
	return fmt.Sprintf("≤%.4g%s", t.most, x)
}

func rateOf(against string, least float64) target {
	return target{figure: "rate", against: against, least: least, unit: "cycles/s"}
}

// rows returns all workloads. Within a workload, the contestants take turns.
func rows() []row {
	allPeers := []string{curator, kazooLock, etcd, redsync}
	recall := []target{{figure: "acquire50", against: keeping, inverse: true, most: 2.5, unit: "acquire p50 with keep=2s, times slower"}}
	return []row{
		{
			name: "1 goroutine, known name", kind: worker.Mutex, names: worker.Own, processes: 1, goroutines: 1,
			who: []string{zkLock, floor}, peers: allPeers,
			targets: []target{
				rateOf(zkLock, 1.2),
				{figure: "acquire99", against: zkLock, most: 1, unit: "acquire p99"},
				{figure: "acquire50", against: floor, most: 1.35, unit: "acquire p50 / create p50"},
			},
		},
		{
			name: "1 goroutine, known name, asynchronous release", kind: worker.Async, names: worker.Own, processes: 1, goroutines: 1,
			who:     []string{zkLock, floor},
			targets: []target{rateOf(floor, 1.7)},
		},
		{
			name: "1 goroutine, fresh name each time", kind: worker.Mutex, names: worker.Fresh, processes: 1, goroutines: 1, tidy: true,
			who: []string{zkLock}, peers: allPeers,
			targets: []target{rateOf(zkLock, 2.5), {figure: "left", most: 0, unit: "znodes left behind"}},
		},
		{
			name: "64 goroutines, a fresh name each time", kind: worker.Mutex, names: worker.Fresh, processes: 1, goroutines: 64, // as middleware does
			who: []string{zkLock}, peers: allPeers,
			targets: []target{rateOf(zkLock, 5)},
		},
		{
			name: "64 goroutines, 64 names", kind: worker.Mutex, names: worker.Own, processes: 1, goroutines: 64,
			who: []string{zkLock, floor}, peers: allPeers,
			targets: []target{rateOf(zkLock, 5), rateOf(floor, 2.7)},
		},
		{
			name: "256 goroutines, 256 names", kind: worker.Mutex, names: worker.Own, processes: 1, goroutines: 256,
			who: []string{zkLock, floor}, peers: allPeers,
			targets: []target{rateOf(zkLock, 7.5), rateOf(floor, 4)},
		},
		{
			name: "64 goroutines, 64 names, several sessions", kind: worker.Mutex, names: worker.Own, processes: 1, goroutines: 64,
			who: []string{twice, fourfold},
		},
		{
			name: "256 goroutines, 256 names, several sessions", kind: worker.Mutex, names: worker.Own, processes: 1, goroutines: 256,
			who: []string{twice, fourfold},
		},
		{
			name: "1 goroutine, kept name", kind: worker.Keep, names: worker.Own, processes: 1, goroutines: 1,
			who:     []string{zkLock, floor},
			targets: []target{rateOf(zkLock, 300)},
		},
		{
			name: "64 goroutines, 64 kept names", kind: worker.Keep, names: worker.Own, processes: 1, goroutines: 64,
			who:     []string{zkLock, floor},
			targets: []target{rateOf(floor, 50)},
		},
		{
			name: "2 processes in turn, 1 name", kind: worker.Mutex, processes: 2, relay: 1,
			who: []string{keeping}, targets: recall,
		},
		{
			// The process that keeps the name uses it 64 times in a row. No name needs more uses to
			// be kept again.
			name: "2 processes, 1 name that the other one keeps", kind: worker.Mutex, processes: 2, relay: 64,
			who: []string{keeping}, targets: recall,
		},
		{
			name: "64 goroutines, 1 name", kind: worker.Mutex, names: worker.One, processes: 1, goroutines: 64,
			who: []string{zkLock}, peers: allPeers,
			targets: []target{rateOf(zkLock, 50)},
		},
		{
			name: "64 goroutines, 1 name, without hand-over", kind: worker.Alone, names: worker.One, processes: 1, goroutines: 64,
			who:     []string{zkLock},
			targets: []target{rateOf(zkLock, 1.3)},
		},
		fleet(2, 1.1),
		fleet(16, 1),
		fleet(48, 1),
		{
			name: "4 processes x 16 goroutines, 1 name", kind: worker.Mutex, names: worker.One, processes: 4, goroutines: 16,
			who: []string{zkLock}, peers: allPeers,
			targets: []target{rateOf(zkLock, 12), {figure: "even", least: .7, unit: "slowest / fastest process"}},
		},
		{
			name: "4 processes x 250 waiters, 1 name", kind: worker.Mutex, names: worker.One, processes: 4, goroutines: 250, once: true,
			who: []string{zkLock}, peers: allPeers,
			targets: []target{
				{figure: "seconds", against: zkLock, inverse: true, least: 10, unit: "time until all waiters had it, times faster"},
				{figure: "packets", against: zkLock, most: .1, unit: "server packets"},
			},
		},
		{
			// A name that is new to all of them. A waiter of zklock that waits for more than a fortieth of its session timeout
			// watches its own node, too, which is three packets.
			name: "1000 sessions, 1 name, a waiter in each", kind: worker.Mutex, names: worker.One, processes: 4, goroutines: 250, once: true,
			lead: zklockEach, who: []string{zkLockEach},
			targets: []target{
				{of: zklockEach, figure: "seconds", against: zkLockEach, inverse: true, least: 1, unit: "time until all waiters had it, times faster"},
				{of: zklockEach, figure: "each", against: zkLockEach, most: 1.2, unit: "server packets a grant"},
			},
		},
		{
			// Two processes prove their leases: the holder, and the first in line. If the others did
			// not rest, all 32 would, and each would write 30 times a minute.
			name: "32 processes, 1 name, one holds it", processes: 32, wait: true,
			who:     []string{zkLock}, // its processes ping, and prove nothing
			targets: []target{{figure: "writes", most: 2.5, unit: "transactions a process a minute"}},
		},
		{
			name: "64 goroutines, 1 name, 90% readers", kind: worker.Mixed, names: worker.One, processes: 1, goroutines: 64,
			who:     []string{curator},
			targets: []target{rateOf(curator, 20)},
		},
		{
			name: "1 goroutine, All of 8 names", kind: worker.All, names: worker.Own, processes: 1, goroutines: 1,
			who:     []string{curator},
			targets: []target{{figure: "acquire50", against: curator, inverse: true, least: 6, unit: "acquire p50, times faster"}},
		},
		{
			name: "TryAcquire, held elsewhere", kind: worker.Try, names: worker.One, processes: 1, goroutines: 1, held: true,
			who: []string{floor},
			targets: []target{
				{figure: "acquire50", against: floor, most: 1.3, unit: "try p50 / getChildren p50"},
				{figure: "writes", most: 0, unit: "transactions a try"},
			},
		},
		{
			name: "TryAcquire, held by this process", kind: worker.TryLocal, names: worker.One, processes: 1, goroutines: 1,
			targets: []target{{figure: "requests", most: .001, unit: "packets a try"}},
		},
	}
}

// fleet returns the row of n processes in each of which one goroutine wants the one name. No place is
// handed over there.
func fleet(n int, least float64) row {
	return row{
		name: fmt.Sprintf("%d processes x 1 goroutine, 1 name", n), kind: worker.Mutex, names: worker.One, processes: n, goroutines: 1,
		who: []string{zkLock}, targets: []target{
			rateOf(zkLock, least),
			{figure: "each", against: zkLock, most: 1, unit: "server packets a cycle"},
		},
	}
}

// growing returns the rows of a growing workload. For each size n, n goroutines want a name
// each, or a single name. limit has the largest size for each contestant.
func growing(names string, sizes []int, limit map[string]int) []row {
	var all []row
	for _, n := range sizes {
		r := row{name: strconv.Itoa(n), kind: worker.Mutex, names: names, processes: 1, goroutines: n}
		for _, who := range []string{zkLock, floor} {
			if most, ok := limit[who]; ok && n <= most {
				r.who = append(r.who, who)
			}
		}
		all = append(all, r)
	}
	return all
}
