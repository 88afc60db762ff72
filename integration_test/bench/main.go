// Command bench compares zklock with the alternatives that a user has, on real ZooKeeper
// servers. It starts servers, or uses existing ones. The alternatives are go-zookeeper's
// zk.Lock; Curator and kazoo, if they are installed; and a client that creates and deletes one
// znode a cycle, without a lock ("create+delete"). Each contestant runs in
// separate processes (see package worker). Contestants take turns, A B C A B C, so that a
// noisy machine disturbs them alike. Only ratios within one run mean anything. In addition
// to the figures it prints which of the project's performance targets were met.
//
//	go run ./integration_test/bench [-zk host:port | -servers 3] [-warm 40s] [-runs 1] [-rounds 9] [-for 1s] [-run regexp]
//
// With -growth it measures one session with growing numbers of names, and of waiters for
// one name, and draws the result. With -overload it measures what a lock gives while more callers
// want it than it carries; -timeline draws that, second by second. With -kills it kills holders,
// and measures the time until the next one has the lock. With -peers it also measures the libraries for etcd and redis, through a
// program that make bench-peers builds.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

// workerEnv is the environment variable that makes this program a worker. Its value is the
// servers, a space, and the contestant.
const workerEnv = "ZKLOCK_BENCH_WORKER"

// options are the flags of the command line.
type options struct {
	zk       string
	servers  int
	runs     int
	rounds   int
	length   time.Duration
	warm     time.Duration
	only     string
	json     string
	markdown string
	growth   string
	peers    string
	everyone bool
	kills    int
	overload bool
	timeline string
	record   string
}

func main() {
	if text := os.Getenv(workerEnv); text != "" {
		exit(work(text))
	}
	var o options
	flag.StringVar(&o.zk, "zk", "", "host:port[,host:port] of existing ZooKeeper servers (default: start servers)")
	flag.IntVar(&o.servers, "servers", 1, "the number of servers to start")
	flag.IntVar(&o.runs, "runs", 1, "how often all workloads are measured, one run after the other")
	flag.IntVar(&o.rounds, "rounds", 9, "the number of turns of each contestant in a run")
	flag.DurationVar(&o.length, "for", time.Second, "the length of a turn")
	flag.DurationVar(&o.warm, "warm", 40*time.Second, "the time for which the servers work before the first workload is measured")
	flag.StringVar(&o.only, "run", ".", "measure only the workloads whose names match this regular expression")
	flag.StringVar(&o.json, "json", "", "write all figures to this file, as JSON; - prints them instead of the tables")
	flag.StringVar(&o.markdown, "md", "", "write the tables to this file, as Markdown")
	flag.StringVar(&o.growth, "growth", "", "measure growth instead of the workloads, and draw it into this file (SVG)")
	flag.StringVar(&o.peers, "peers", "", "the program that measures etcd and redsync (see make bench-peers)")
	flag.BoolVar(&o.everyone, "all", false, "measure Curator and kazoo in every workload with plain locks")
	flag.IntVar(&o.kills, "kills", 0, "measure how soon the lock of a killed process has its next holder, by contrib/locktest, instead of the workloads, on one server and on three, with so many kills of each library")
	flag.BoolVar(&o.overload, "overload", false, "measure how many callers get the lock while too many want it, instead of the workloads")
	flag.StringVar(&o.timeline, "timeline", "", "draw the grants of each second under overload into this file (SVG), from the records next to it (.ndjson)")
	flag.StringVar(&o.record, "record", "", "before drawing -timeline, measure zklock, and keep the records under this name: before or after")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, o, os.Stdout))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// work runs this program as a worker.
func work(text string) error {
	hosts, library, _ := strings.Cut(text, " ")
	l, err := openLocker(library, hosts)
	if err != nil {
		return err
	}
	return worker.Serve(l, library, os.Stdin, os.Stdout)
}

func run(ctx context.Context, o options, out io.Writer) error {
	pattern, err := regexp.Compile(o.only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if o.runs < 1 || o.rounds < 1 {
		return errors.New("-runs and -rounds have to be at least 1")
	}
	if o.kills > 0 {
		return failover(ctx, o, pattern, out)
	}
	if o.timeline != "" {
		return timeline(ctx, o, pattern, out)
	}
	b, versions, leave, err := begin(ctx, o, o.servers)
	if err != nil {
		return err
	}
	defer leave()
	if o.growth != "" {
		return b.growth(ctx, pattern, o.growth, o.markdown, out)
	}
	all, method := append(rows(), shortOverloads()...), b.method(o.runs)
	switch {
	case o.overload:
		all, method = overloads(usual), b.loadMethod()
		delete(versions, kazooLock) // it takes part in no row
	case o.peers != "": // see results-overload.md for these
		all = rows()
	}
	rep, before := report{Head: append(machine(b, versions, o.servers), method), Servers: o.servers}, processorTime()
	if rep.Results, err = b.measure(ctx, o, all, pattern); err != nil {
		return err
	}
	return rep.write(o, out, before)
}

// begin starts n servers, unless there are some already, and prepares the contestants. The function
// leave stops what begin started.
func begin(ctx context.Context, o options, n int) (b *runner, versions map[string]string, leave func(), err error) {
	s, err := serve(o.zk, n)
	if err != nil {
		return nil, nil, nil, err
	}
	b = &runner{servers: s, rounds: o.rounds, length: o.length, warmed: o.warm, start: make(map[string]func() (*exec.Cmd, error)), addrs: make(map[string]string),
		say: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	for _, library := range inside {
		b.start[library] = b.ours(library)
	}
	versions, cleanup, err := b.invite(ctx, o, n)
	leave = func() {
		cleanup()
		s.close()
	}
	if err == nil {
		err = b.warm(ctx, o.warm)
	}
	if err != nil {
		leave()
		return nil, nil, nil, err
	}
	return b, versions, leave, nil
}

// measure runs the workloads that match a pattern, as often as the options say. The runs of one
// workload are far apart in time, so their spread includes changes of the machine.
func (b *runner) measure(ctx context.Context, o options, rows []row, pattern *regexp.Regexp) ([]result, error) {
	var results []result
	for n := range o.runs {
		i := 0
		for _, r := range rows {
			if !pattern.MatchString(r.name) {
				continue
			}
			b.say("run %d of %d: %s ...", n+1, o.runs, r.name)
			who := append([]string{cmp.Or(r.lead, ours)}, r.who...)
			for _, p := range r.peers {
				if b.start[p] != nil && (o.everyone || o.peers != "" || r.load != nil) && !slices.Contains(who, p) {
					who = append(who, p)
				}
			}
			res, err := b.run(ctx, r, who)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", r.name, err)
			}
			if n == 0 {
				results = append(results, res)
			} else {
				results[i].add(res)
			}
			i++
		}
	}
	return results, nil
}

// invite prepares Curator, kazoo and, with n servers each, the libraries of -peers, and returns their
// versions.
func (b *runner) invite(ctx context.Context, o options, n int) (versions map[string]string, cleanup func(), err error) {
	dir, err := os.MkdirTemp("", "zklock-bench-")
	if err != nil {
		return nil, func() {}, err
	}
	var open []*process
	cleanup = func() {
		for _, p := range open {
			p.close()
		}
		_ = os.RemoveAll(dir) // a temporary folder that stays does no harm
	}
	versions = make(map[string]string)
	for name, prepare := range foreign {
		start, version, why := prepare(dir, b.servers.hosts)
		if why != nil {
			start = func() (*exec.Cmd, error) { return nil, why }
			b.say("%v", why)
		}
		b.start[name], versions[name] = start, version
	}
	if o.peers == "" {
		return versions, cleanup, nil
	}
	for _, name := range []string{etcd, redsync} {
		// This process starts the library's servers. They run until cleanup.
		p, err := startProcess(name+"'s servers", exec.CommandContext(ctx, o.peers, "serve", name, dir, strconv.Itoa(n)))
		if err != nil {
			return versions, cleanup, err
		}
		open = append(open, p)
		line, err := p.answer("serving", time.Minute)
		if err != nil {
			return versions, cleanup, err
		}
		addr, v, _ := strings.Cut(line, " ")
		versions[name] = v
		b.addrs[name] = addr
		b.start[name] = func() (*exec.Cmd, error) { return exec.Command(o.peers, "work", name, addr), nil }
	}
	return versions, cleanup, nil
}

// write calls to with the file at path, or with out if path is "-". It does nothing if path
// is "".
func write(path string, out io.Writer, to func(io.Writer) error) error {
	switch path {
	case "":
		return nil
	case "-":
		return to(out)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(to(f), f.Close())
}
