package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/integration_test/maven"
)

// choice is what to run, and where the results go.
type choice struct {
	lines, suites string // regular expressions
	rotate        bool
	fetch, env    bool
	sparePeers    bool
	cache, file   string
	chaos, time   time.Duration
}

func main() {
	var c choice
	flag.StringVar(&c.lines, "lines", ".", "run only the lines whose names, such as 3.9, match this regular expression")
	flag.StringVar(&c.suites, "suites", ".", "run only the suites whose names match this regular expression")
	flag.BoolVar(&c.rotate, "rotate", false, "run the quick suites, on one line that changes with the date, and on the line "+steady)
	flag.BoolVar(&c.fetch, "fetch", false, "only fetch the servers, and print their folders, for ZOOKEEPER_HOME")
	flag.BoolVar(&c.env, "peers", false, "only fetch the newest releases of other lock libraries, and print the environment variables with which tests use them")
	flag.BoolVar(&c.sparePeers, "spare-peers", false, "if the newest releases of other lock libraries cannot be fetched, leave their suites out and say so, and do not fail for that")
	flag.StringVar(&c.cache, "cache", "bin/zookeeper", "the folder of the servers")
	flag.StringVar(&c.file, "md", "", "write the results to this file, too")
	flag.DurationVar(&c.chaos, "chaos", time.Minute, "the time for the suite of random faults on each version")
	flag.DurationVar(&c.time, "for", 0, "start no suite after this time, and begin with a line that changes with the date; 0 means no limit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "matrix:", err)
		stop()
		os.Exit(1)
	}
}

// pick returns the lines and suites to run.
func (c choice) pick(day int) ([]line, []suite, error) {
	some, tests := lines, suites
	if c.rotate {
		some = rotated(day)
		tests = slices.DeleteFunc(slices.Clone(tests), func(s suite) bool { return !s.quick })
	}
	which, err := regexp.Compile(c.lines)
	if err != nil {
		return nil, nil, err
	}
	some = slices.DeleteFunc(slices.Clone(some), func(l line) bool { return !which.MatchString(l.name) })
	if which, err = regexp.Compile(c.suites); err != nil {
		return nil, nil, err
	}
	tests = slices.DeleteFunc(slices.Clone(tests), func(s suite) bool { return !which.MatchString(s.name) })
	if n := len(some); c.time > 0 && n > 0 {
		some = slices.Concat(some[day%n:], some[:day%n])
	}
	if len(some) == 0 || len(tests) == 0 {
		return nil, nil, errors.New("no line, or no suite, matches")
	}
	return some, tests, nil
}

func (c choice) run(ctx context.Context) error {
	some, tests, err := c.pick(time.Now().YearDay())
	if err != nil {
		return err
	}
	// The tests run in another folder.
	cache, err := filepath.Abs(c.cache)
	if err != nil {
		return err
	}
	began := time.Now()
	s := &store{cache, maven.Find, func(format string, args ...any) { fmt.Fprintf(os.Stderr, "matrix: "+format+"\n", args...) }}
	var peers, names []string
	var absent error // why suites with the newest peers are left out
	if c.env || !c.fetch && slices.ContainsFunc(tests, func(s suite) bool { return s.peers }) {
		switch peers, names, err = fetchPeers(ctx, s); {
		case err != nil && (c.rotate || c.sparePeers):
			absent = fmt.Errorf("the tests with the newest peers were left out: %w", err)
			tests = slices.DeleteFunc(tests, func(s suite) bool { return s.peers })
		case err != nil:
			return err
		}
	}
	if c.env {
		fmt.Println(strings.Join(peers, "\n"))
		return nil
	}
	rows := make([]row, len(some))
	servers := make([]release, len(some))
	for i, l := range some {
		rows[i].line = l
		if servers[i], err = s.server(ctx, l); err != nil {
			rows[i].absent = err.Error()
			s.logf("%v: %v", l, err)
			continue
		}
		rows[i].version = servers[i].version
		if c.fetch {
			fmt.Println(servers[i].folder)
		}
	}
	if c.fetch {
		return nil
	}
	fetched := time.Since(began)
	dir, err := os.MkdirTemp("", "matrix-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := build(ctx, dir)
	if err != nil {
		return err
	}
	b.chaos, b.peers = c.chaos, peers
	stopped := c.runAll(ctx, b, rows, servers, tests)
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s, %s/%s, %d cores, %s. It took %v to fetch what the cache did not have.\n", java(context.WithoutCancel(ctx)), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), fetched.Round(time.Second))
	if len(names) > 0 {
		fmt.Fprintf(&text, "The newest peers are %s.\n", strings.Join(names, " and "))
	}
	if absent != nil {
		fmt.Fprintf(&text, "Suites are missing: %v.\n", absent)
	}
	fmt.Fprintln(&text)
	failed := report(&text, rows, tests, time.Since(began))
	if _, err := fmt.Printf("\n%s", text.Bytes()); err != nil {
		return err
	}
	if c.file != "" && stopped == nil {
		err = os.WriteFile(c.file, append([]byte(header), text.Bytes()...), 0o644)
	}
	if c.sparePeers {
		absent = nil // the results name it
	}
	return errors.Join(stopped, failed, absent, err)
}

// runAll runs the suites on the servers of each row, and prints the outcomes. After an
// interrupt it reports the suites that have not ended as left out.
func (c choice) runAll(ctx context.Context, b *bench, rows []row, servers []release, tests []suite) error {
	began := time.Now()
	for i := range rows {
		if rows[i].absent != "" {
			continue
		}
		for _, t := range tests {
			outcome := cell{left: true}
			if ctx.Err() == nil && (c.time == 0 || time.Since(began) < c.time) && !(c.rotate && t.once && rows[i].line.name != steady) {
				outcome = b.run(ctx, t, servers[i], following(rows, servers, i))
			}
			if ctx.Err() != nil {
				outcome = cell{left: true}
			} else {
				fmt.Printf("%-8s %-16s %s\n", rows[i].version, t.name, outcome)
			}
			if len(outcome.failed) > 0 {
				if err := c.keep(outcome, rows[i].version+" "+t.name); err != nil {
					return err
				}
			}
			rows[i].cells = append(rows[i].cells, outcome)
		}
	}
	if ctx.Err() != nil {
		return errors.New("interrupted: the suites that are left out had not ended")
	}
	return nil
}

// following returns the release of the next newer line after that of row i; the zero release if
// there is none.
func following(rows []row, servers []release, i int) (next release) {
	at := len(lines)
	for j, r := range rows {
		if k := position(r.line); k > position(rows[i].line) && k < at && servers[j].folder != "" {
			at, next = k, servers[j]
		}
	}
	return next
}

// fetchPeers fetches the newest releases of the other lock libraries. It returns the
// environment variables that make the tests use them, and their names.
func fetchPeers(ctx context.Context, s *store) (env, names []string, err error) {
	curator, err := s.curator(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("fetch Curator: %w", err)
	}
	kazoo, err := s.kazoo(ctx)
	if err != nil {
		return nil, nil, err
	}
	return []string{"ZKLOCK_TEST_CURATOR=" + curator.folder, "ZKLOCK_TEST_KAZOO=" + kazoo.folder},
		[]string{"Curator " + curator.version, "kazoo " + kazoo.version}, nil
}

// header begins the file of the results.
const header = "<!-- Written by make matrix. Do not edit. -->\n\n# The tests on each line of ZooKeeper\n\n"

// keep prints the logs of a suite's failed tests, and writes the suite's whole output to a file
// of the cache.
func (c choice) keep(outcome cell, name string) error {
	for _, n := range outcome.failed {
		fmt.Printf("\n%s:\n%s", n.test, outcome.logs[n.test])
	}
	path := filepath.Join(c.cache, "failed", strings.ReplaceAll(name, " ", "-")+".log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	fmt.Printf("\nEverything that it printed is in %s.\n\n", path)
	return os.WriteFile(path, []byte(outcome.output), 0o644)
}

// java returns the version of the Java runtime.
func java(ctx context.Context) string {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "java", "-version")
	cmd.Stderr = io.Writer(&out)
	if err := cmd.Run(); err != nil {
		return "Java"
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	return "Java " + strings.Trim(regexp.MustCompile(`"[^"]*"`).FindString(first), `"`)
}
