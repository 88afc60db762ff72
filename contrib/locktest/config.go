package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/internal/child"
	"github.com/zklock/go-zklock/contrib/locktest/servers"
)

// Config is what a run does. Zero fields have defaults, as their comments say.
type Config struct {
	// Worker is the command of a worker: its path and its arguments.
	Worker []string

	// Others are the commands of further workers. The processes take turns: the first one runs Worker, the second
	// one the first of Others, and so on. So two libraries that share locks are judged together. Their
	// servers, and what a fault can be, must be the same. New clients after the faults run Worker.
	Others [][]string

	// Env has variables for the workers in addition to those of this process.
	Env []string

	// Ensemble has the servers.
	Ensemble servers.Ensemble

	// Direct gives the workers the servers' own addresses, without proxies. Then no fault of the network can
	// be made. It is for what compares addresses, such as clients of one machine that find each other.
	Direct bool

	// Spread puts each process at a distance of its own from each server: another server is its nearest, at a quarter of Distance,
	// and to every other process bytes come back in half of the time.
	Spread bool

	// Workers is the number of processes at a time; 0: 3.
	Workers int

	// Clients is how many acquisitions are under way in a process at a time; 0: 2, and none with Alone.
	Clients int

	// Names are the names of the locks; nil: a, b and c. A name for each worker, or fewer, makes
	// it likely that a worker holds a lock when a fault begins.
	Names []string

	// Locks are what clients ask for, each as often as the others; nil: each of Names for one client alone. Clients that try after the
	// faults ask for each once.
	Locks []Lock

	// Long are locks that are held as long as they can be: process n has the n-th until it loses it or the faults are over, and the
	// others wait for it and then have it for a moment. A client of each process more does that. Recover does not count it.
	Long []string

	// Alone has no process wait for a lock of Long that another process has. Then a process sends what its library sends to keep its
	// session, and nothing else that would prolong it.
	Alone bool

	// TTL is the time after which the locks of a dead client are free, as the workers are asked to set
	// it; 0: 4s.
	TTL time.Duration

	// Hold is the mean time of work under a lock; 0: 10ms.
	Hold time.Duration

	// Think is the mean pause between the release and the next acquisition of a client; 0: 10ms.
	Think time.Duration

	// Philosophers makes each client take two locks at a time, in random order, so that clients wait for each
	// other in circles. It needs two names at least. Such a run has no registers. Package judge has its
	// figures in judge.Deadlocks.
	Philosophers bool

	// Distance is how much longer the bytes between clients and servers take, one way. It needs links: not [Config.Direct].
	Distance time.Duration

	// GiveUp is how long a client of such a run waits for its second lock until its process is killed;
	// 0: 10s.
	GiveUp time.Duration

	// Kills is how many holders are killed, of all Names together, in place of a workload; 0: there is a workload. Each name has one
	// process that holds it, and another one that waits for it. The first one is killed, the other one is the next holder, and so
	// on. The processes of a name run Worker and Others in turn, with the servers' own addresses. There are no registers and no
	// faults. [judge.Successions] has the times until the next grants.
	Kills int

	// Beat is the time between two heartbeats of the library: a holder is killed at a random moment of such a time; 0: a
	// third of the TTL.
	Beat time.Duration

	// Restart has no process wait for a name while another one holds it: the next one is started after the kill.
	Restart bool

	// LongHolds is how many works there are for one that lasts up to twice the TTL; 0: none does.
	LongHolds int

	// Seed decides about names, pauses and faults.
	Seed uint64

	// For is how long the workload lasts. It lasts longer if the faults do, or if Grants asks for more.
	For time.Duration

	// Grants is how many locks are granted at least, unless the limit ends first.
	Grants int

	// Limit ends the workload before there are as many grants; 0: a minute after For.
	Limit time.Duration

	// Faults are what happens, one after the other: see [fault.Plan].
	Faults []fault.Fault

	// Own makes the faults of kinds that package fault does not have. Each returns when it is over.
	Own map[fault.Kind]func(ctx context.Context) error

	// Settle is how long a name may take after the faults until it is granted; 0: 20 seconds and 10
	// times the TTL.
	Settle time.Duration

	// Recover is how long each client may take after a fault until it has had a lock since. The next fault waits for that, and if
	// it takes longer, Run returns an error; 0: faults wait for nothing.
	Recover time.Duration

	// Recheck asks a worker once more whether it holds a lock when a register has refused its newest access: what the library believes
	// then counts as Refused in package judge.
	Recheck bool

	// Stuck is called when a client has waited for too long: before Run returns because of Recover, and when a new client
	// has not had a lock within Settle. Then the workers get SIGQUIT; nil: only that happens.
	Stuck func()

	// Idle is called before the workers end, when each client has finished its work; nil: nothing is. Its error is that of
	// the run.
	Idle func(ctx context.Context) error

	// Stderr gets what the workers write to their standard error; nil: nothing does.
	Stderr *os.File

	// Progress gets a line for each fault, and one every few seconds; nil: none. Several goroutines
	// write to it.
	Progress io.Writer
}

// Lock is what a client asks for.
type Lock struct {
	// Name is the name. Names with + between them are several, which a client holds at once.
	Name string

	// Shared asks for a lock that others may hold shared at the same time.
	Shared bool

	// Permits asks for one of so many permits; 0: for the whole lock. Work under a permit uses no register.
	Permits int
}

// withDefaults replaces the zero fields and checks the others.
func (c Config) withDefaults() (Config, error) {
	if len(c.Worker) == 0 || c.Ensemble == nil || slices.ContainsFunc(c.Others, func(o []string) bool { return len(o) == 0 }) {
		return c, errors.New("locktest: a run needs a worker and an ensemble")
	}
	for _, f := range c.Faults {
		if victims := c.victims(f.Kind); c.Own[f.Kind] == nil && (f.Victim < 0 || f.Victim >= victims) {
			return c, fmt.Errorf("locktest: the fault %s has victim %d of %d", f, f.Victim, victims)
		}
		if f.Kind == fault.JumpClient && slices.ContainsFunc(c.commands(), func(command []string) bool { return child.IsGo(command[0]) }) {
			return c, fmt.Errorf("locktest: the fault %s has no effect on a worker that is a program in Go", f)
		}
		if f.Confined < 0 || f.Confined > cmp.Or(c.Workers, defaultWorkers) {
			return c, fmt.Errorf("locktest: the fault %s confines client %d", f, f.Confined)
		}
		if c.Direct && (f.Kind.OfNetwork() || f.Confined > 0) {
			return c, fmt.Errorf("locktest: the fault %s needs proxies, and Direct asks for none", f)
		}
	}
	def := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	wait := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	def(&c.Workers, defaultWorkers)
	if !c.Alone {
		def(&c.Clients, 2)
	}
	if c.Names == nil {
		c.Names = []string{"a", "b", "c"}
	}
	if c.Locks == nil {
		for _, name := range c.Names {
			c.Locks = append(c.Locks, Lock{Name: name})
		}
	}
	if c.Philosophers && len(c.Names) < 2 {
		return c, errors.New("locktest: philosophers need two names at least")
	}
	if c.Kills > 0 && len(c.Faults) > 0 {
		return c, errors.New("locktest: a run that kills holders has no faults")
	}
	wait(&c.TTL, 4*time.Second)
	wait(&c.Beat, c.TTL/3)
	wait(&c.Hold, 10*time.Millisecond)
	wait(&c.Think, 10*time.Millisecond)
	wait(&c.GiveUp, 10*time.Second)
	wait(&c.Limit, c.For+time.Minute)
	wait(&c.Settle, 20*time.Second+10*c.TTL)
	if c.Progress == nil {
		c.Progress = io.Discard
	}
	return c, nil
}

// commands are the commands of all workers, which the processes run in turn.
func (c Config) commands() [][]string { return append([][]string{c.Worker}, c.Others...) }

// victims is how many victims a fault of a kind can have.
func (c Config) victims(k fault.Kind) int {
	if k.OfServer() {
		return len(c.Ensemble.Addrs())
	}
	return cmp.Or(c.Workers, defaultWorkers)
}

// defaultWorkers is the default of Config.Workers.
const defaultWorkers = 3

// hold returns how long a work lasts.
func (c Config) hold(rng *rand.Rand) time.Duration {
	if c.LongHolds > 0 && rng.IntN(c.LongHolds) == 0 {
		return about(rng, c.TTL)
	}
	return about(rng, c.Hold)
}
