// Command locktest judges a lock library.
//
//	go run ./contrib/locktest/cmd/locktest -library zklock -servers 3 -seed 7 -for 30s
//
// It starts servers, unless -addrs names others, and workers of the library. It breaks them on a schedule, prints progress to standard error, and prints one table at the end. The exit status is 1
// if the library failed, and 2 if the run could not be done.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest"
	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/internal/child"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
	"github.com/zklock/go-zklock/contrib/locktest/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	passed, err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintf(os.Stderr, "locktest: %v\n", err)
		os.Exit(2)
	case !passed:
		os.Exit(1)
	}
}

// options are what the command line says.
type options struct {
	library, worker, backend, addrs, logs, faults, history, check string
	servers, explain                                              int
	schedule, silent, fade                                        bool
	philosophers                                                  time.Duration
	config                                                        locktest.Config
	comparison                                                    comparison
}

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("locktest", flag.ContinueOnError)
	f.StringVar(&o.library, "library", "", "a library with a worker in this project: zklock, zk, curator, kazoo, etcd or redsync; zklock:keep: a mode of its worker; zklock:zk+zk: two that share locks; for -comparison a regular expression")
	f.StringVar(&o.worker, "worker", "", "the command of a worker of another library; 'A + B': two that share locks")
	f.StringVar(&o.backend, "backend", "zookeeper", "the servers to start for -worker: zookeeper, etcd or redis")
	f.StringVar(&o.comparison.document, "comparison", "", "compare the libraries, and write the document to this file, and its picture next to it")
	f.StringVar(&o.comparison.results, "results", "comparison.ndjson", "the file with the results of -comparison: what it has is not run again")
	f.IntVar(&o.comparison.runs, "runs", 1, "the runs of each library with each fault, for -comparison; 0: write the document only")
	f.StringVar(&o.addrs, "addrs", "", "addresses of servers that run already, with commas; none of them is killed")
	f.StringVar(&o.logs, "logs", "", "for -addrs and -check: the folders of the transaction logs of all voting ZooKeeper servers, with commas")
	f.StringVar(&o.faults, "faults", ".", "a regular expression for the faults to make")
	f.StringVar(&o.history, "history", "", "write the history to this file; -comparison: write those of runs with mistakes to this folder")
	f.StringVar(&o.check, "check", "", "judge the history in this file, and run nothing")
	f.IntVar(&o.explain, "explain", 0, "for -check: draw the acquisition with this number, those of its names at that time, and the faults")
	f.BoolVar(&o.schedule, "schedule", false, "print the schedule of the faults, and run nothing")
	f.BoolVar(&o.config.Spread, "spread", false, "each process is at a distance of its own from each server: from a quarter of -distance to the whole, and back in half of the time for every other process")
	f.BoolVar(&o.config.Direct, "direct", false, "no proxies between workers and servers, and so no faults of the network")
	f.IntVar(&o.servers, "servers", 3, "the number of servers to start")
	f.IntVar(&o.config.Workers, "workers", 3, "processes of the worker")
	f.IntVar(&o.config.Clients, "clients", 2, "acquisitions of a process at a time")
	names := f.Int("names", 3, "the number of locks")
	share := f.Bool("shared", false, "half of the acquisitions ask for a shared lock; zklock: with the mode writer")
	permits := []int{0}
	f.Func("permits", "each acquisition asks for one of so many permits, or, with several numbers and commas between them, of as many as one of them says, by chance; 0: for the whole lock", func(text string) error {
		permits = nil
		for number := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(number)
			if err != nil || n < 0 {
				return fmt.Errorf("want numbers, not %q", number)
			}
			permits = append(permits, n)
		}
		return nil
	})
	f.DurationVar(&o.config.TTL, "ttl", 4*time.Second, "when the locks of a dead client must be free")
	f.DurationVar(&o.config.Hold, "hold", 10*time.Millisecond, "the mean time of work")
	f.DurationVar(&o.config.Think, "think", 10*time.Millisecond, "the mean pause between two acquisitions")
	f.IntVar(&o.config.LongHolds, "long", 100, "of so many works, one lasts up to twice the ttl; 0: none does")
	f.Uint64Var(&o.config.Seed, "seed", 1, "what decides about names, pauses and faults")
	f.DurationVar(&o.philosophers, "philosophers", 0, "for so long, clients take two locks at a time in random order, and wait in circles; without other flags 5 workers with a client each, 5 names, no faults")
	f.DurationVar(&o.config.Distance, "distance", 0, "how much longer the bytes between clients and servers take, one way")
	f.DurationVar(&o.config.GiveUp, "give-up", 10*time.Second, "how long a client of -philosophers waits for its second lock until its process is killed")
	f.IntVar(&o.config.Kills, "kills", 0, "kill so many holders, each of which has a process that waits for its lock, and measure the time until the next grant, in place of a workload; without -names, of one name")
	f.DurationVar(&o.config.Beat, "beat", 0, "-kills: a holder is killed at a random moment of such a time, that between two heartbeats; 0: a third of the ttl")
	f.BoolVar(&o.config.Restart, "restart", false, "-kills: no process waits; the next one is started after a kill")
	f.BoolVar(&o.silent, "silent", false, "one process holds twelve locks, and the server that it is at falls silent; those of ZooKeeper have ticks of 2 s; without -ttl 10 s")
	f.BoolVar(&o.fade, "fade", false, "each process holds a lock of its own until all clients are cut off, and their sessions expire: servers of ZooKeeper with ticks of 2 s, or of a quarter of the ttl if that is less")
	f.DurationVar(&o.config.For, "for", 30*time.Second, "the length of the workload; up to a minute is added until all names are free")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.philosophers > 0 {
		o.seatPhilosophers(f, names)
	}
	if o.config.Kills > 0 {
		o.killHolders(f, names)
	}
	if o.silent {
		o.fallSilent(f)
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.explain != 0 && o.check == "" {
		return o, errors.New("-explain draws an acquisition of a history: name its file with -check")
	}
	if (o.library == "") == (o.worker == "") && o.check == "" && !o.schedule && o.comparison.document == "" {
		return o, errors.New("name a library with -library, or the command of a worker with -worker")
	}
	if *names < 1 || o.servers < 1 || o.config.Workers < 1 || o.config.Clients < 1 || o.config.TTL <= 0 {
		return o, errors.New("-names, -servers, -workers, -clients and -ttl must be above 0")
	}
	if o.fade {
		o.fadeOut(f)
	}
	for i := range *names {
		name := fmt.Sprintf("lock-%d", i+1)
		o.config.Names = append(o.config.Names, name)
		for _, n := range permits {
			o.config.Locks = append(o.config.Locks, locktest.Lock{Name: name, Permits: n})
		}
		if *share {
			o.config.Locks = append(o.config.Locks, locktest.Lock{Name: name, Shared: true})
		}
	}
	o.config.Progress = os.Stderr
	if t := o.tick(); t > 0 {
		o.config.Env = append(o.config.Env, "LOCKTEST_ZKLOCK=tick_time="+t.String())
	}
	// Clients with a session_dir compare the addresses of servers.
	o.config.Direct = o.config.Direct || o.library == "zklock:dir"
	if o.comparison.document != "" {
		return o, nil
	}
	kinds, err := o.kinds()
	if err != nil {
		return o, err
	}
	o.config.Faults = o.plan(kinds)
	return o, nil
}

func (o options) numberOfServers() int {
	if o.addrs != "" {
		return len(strings.Split(o.addrs, ","))
	}
	return o.servers
}

// plan is the schedule of faults of some kinds.
func (o options) plan(kinds []fault.Kind) []fault.Fault {
	switch {
	case o.silent:
		return silentPlan(kinds, o.config.TTL, o.backend)
	case o.fade:
		return fadePlan(o.config.TTL)
	}
	return fault.Plan{
		Seed: o.config.Seed, Kinds: kinds, For: o.config.For, TTL: o.config.TTL,
		Clients: o.config.Workers, Servers: o.numberOfServers(),
	}.Schedule()
}

// kinds are the faults that were chosen, but for those that cannot be made.
func (o options) kinds() ([]fault.Kind, error) {
	chosen, err := regexp.Compile(o.faults)
	if err != nil {
		return nil, fmt.Errorf("-faults: %w", err)
	}
	var kinds []fault.Kind
	for _, k := range fault.Kinds {
		if !chosen.MatchString(string(k)) {
			continue
		}
		why, err := o.refuses(k)
		if err != nil {
			return nil, err
		}
		if why == nil {
			kinds = append(kinds, k)
		}
	}
	return kinds, nil
}

// refuses returns why a fault cannot be made; nil: it can.
func (o options) refuses(k fault.Kind) (why, err error) {
	goes := func(command []string) bool { return len(command) > 0 && child.IsGo(command[0]) }
	inGo, name := slices.ContainsFunc(commands(o.worker), goes), o.backend
	if o.library != "" {
		all, err := chosen(o.library)
		if err != nil {
			return nil, err
		}
		inGo, name = slices.ContainsFunc(all, func(l library) bool { return l.goes }), all[0].backend
	}
	backend, err := servers.Named(name)
	switch {
	case err != nil:
		return nil, err
	case k == fault.JumpClient && inGo:
		return fmt.Errorf("%s: the worker is a program in Go, whose clock cannot be set apart", k), nil
	case o.config.Direct && k.OfNetwork():
		return fmt.Errorf("%s: it needs proxies", k), nil
	case o.addrs != "" && k.OfServer() && k != fault.Blink:
		return fmt.Errorf("%s: another program runs the servers", k), nil
	case o.addrs != "":
		return nil, nil
	}
	return backend.Supports(k, o.servers), nil
}

// run does what the command line says. It reports whether the library passed.
func run(ctx context.Context, args []string) (passed bool, err error) {
	o, err := parse(args)
	if err != nil {
		return false, err
	}
	switch {
	case o.comparison.document != "":
		return true, o.compare(ctx)
	case o.schedule:
		for _, f := range o.config.Faults {
			fmt.Printf("after %v: %s, number %d\n", f.After.Round(time.Millisecond), f, f.Victim+1)
		}
		return true, nil
	case o.check != "":
		file, err := os.Open(o.check)
		if err != nil {
			return false, err
		}
		defer file.Close()
		events, err := history.ReadFrom(file)
		if err != nil {
			return false, fmt.Errorf("%s: %w", o.check, err)
		}
		if o.explain != 0 {
			drawn, err := judge.Explain(events, o.explain)
			fmt.Print(drawn)
			return true, err
		}
		logs, err := judgeLogs(events, o.logged())
		if err != nil {
			return false, err
		}
		return verdict(o.check, events, logs, o.silent)
	}
	events, logs, err := o.play(ctx)
	if err != nil {
		return false, err
	}
	if o.history != "" {
		if err := write(o.history, events); err != nil {
			return false, err
		}
	}
	return verdict(o.library+o.worker, events, logs, o.silent)
}

// logged are the folders of -logs.
func (o options) logged() []string {
	if o.logs == "" {
		return nil
	}
	return strings.Split(o.logs, ",")
}

// play starts servers and workers and runs the workload.
func (o options) play(ctx context.Context) (events []history.Event, logs *judge.Servers, err error) {
	dir, err := os.MkdirTemp("", "locktest")
	if err != nil {
		return nil, nil, err
	}
	keep := false // the files of the run
	defer func() {
		if err == nil && !keep {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintf(os.Stderr, "locktest: the files of the servers, and workers.log, are in %s\n", dir)
		}
	}()
	c := o.config
	if c.Stderr, err = os.Create(filepath.Join(dir, "workers.log")); err != nil {
		return nil, nil, err
	}
	defer c.Stderr.Close()
	programs := commands(o.worker)
	if o.library != "" {
		all, err := chosen(o.library)
		if err != nil {
			return nil, nil, err
		}
		programs, o.backend = nil, all[0].backend
		for _, l := range all {
			command, err := l.command(ctx, dir)
			if err != nil {
				return nil, nil, err
			}
			programs = append(programs, command)
		}
	}
	c.Worker, c.Others = programs[0], programs[1:]
	status := func() string { return "" }
	c.Ensemble = servers.Given(strings.Split(o.addrs, ","))
	if o.addrs == "" {
		started, err := o.start(ctx, dir, c.Faults)
		if err != nil {
			return nil, nil, err
		}
		c.Ensemble, status = started, func() string { return started.Status(ctx) }
	}
	if dirs := o.logged(); len(dirs) > 0 {
		c.Ensemble = withLogs{c.Ensemble, dirs}
	}
	c.Stuck = func() {
		keep = true
		fmt.Fprintf(c.Stderr, "a name is stuck; what the servers know:\n%s\n", status())
	}
	events, err = locktest.Run(ctx, c)
	keep = keep || slices.ContainsFunc(events, func(e history.Event) bool { return e.Reason == history.Crashed })
	if logged, ok := c.Ensemble.(servers.Logged); ok && err == nil {
		logs, err = judgeLogs(events, logged.Logs())
		keep = keep || logs != nil && logs.Judged > 0 && !logs.Passed()
	}
	return events, logs, cmp.Or(err, c.Ensemble.Close())
}

// withLogs are servers that another program runs, with the folders of their logs.
type withLogs struct {
	servers.Ensemble
	dirs []string
}

func (w withLogs) Logs() []string { return w.dirs }

// start starts servers that can have some faults.
func (o options) start(ctx context.Context, dir string, faults []fault.Fault) (*servers.Processes, error) {
	backend, err := servers.Named(o.backend)
	if err != nil {
		return nil, err
	}
	options := servers.Options{Clocks: slices.ContainsFunc(faults, func(f fault.Fault) bool { return f.Kind == fault.JumpServer })}
	options.Tick = o.tick()
	if o.backend == "zookeeper" {
		fmt.Printf("settings: %v | %v | %d | %v | %d | %d\n", cmp.Or(options.Tick, servers.TickTime), o.config.TTL, o.servers, o.config.Distance,
			o.config.Workers*o.config.Clients, len(slices.Max(o.config.Names)))
	}
	return backend.Run(ctx, dir, o.servers, options)
}

// tick is that of servers of ZooKeeper: the usual one for sessions that users have; 0: that of package servers.
func (o options) tick() time.Duration {
	switch {
	case o.silent || usual(o.config.TTL):
		return silentTick
	case o.fade:
		return fadeTick(o.config.TTL)
	}
	return 0
}

// commands splits a text at each + between spaces, and each command of a worker at its spaces.
func commands(text string) [][]string {
	var all [][]string
	for command := range strings.SplitSeq(text, " + ") {
		all = append(all, strings.Fields(command))
	}
	return all
}

func write(path string, events []history.Event) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, file.Close()) }()
	return history.WriteTo(file, events)
}
