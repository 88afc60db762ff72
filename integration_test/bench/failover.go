package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// succession is a way in which the lock of a killed process gets to the next holder on the same
// machine.
type succession struct {
	name    string        // in the tables
	timeout string        // how long the servers keep a dead holder's lock, by the library's documentation
	library string        // as contrib/locktest calls it
	ttl     time.Duration // the time-out without what the servers make of it
	servers string        // the contestant whose servers it uses; "": ZooKeeper
	dirs    int           // the number of session directories, which the holders use in turn
	reaped  bool          // a process that locks nothing watches each directory
	restart bool          // no process waits: the killed one is started again
	chains  int           // the number of names, side by side, that share the kills
	beat    time.Duration // a holder is killed at a random moment of this time, that between two heartbeats
}

// inSight is the succession that the targets are about.
const inSight = "zklock, session_dir, another process waits"

// successions returns all. Those in one slice are measured side by side: their processes do nothing
// for most of the time.
func successions() [][]succession {
	const moment, session = 300 * time.Millisecond, "session 10s"
	dir := succession{timeout: session, library: "zklock", ttl: 10 * time.Second, dirs: 1, chains: 1, beat: moment}
	waits, restarted, reaped := dir, dir, dir
	waits.name = inSight
	restarted.name, restarted.restart = "zklock, session_dir, the killed process is restarted", true
	// No holder watches the directory of the one before it.
	reaped.name, reaped.dirs, reaped.reaped = "zklock, session_dir, only zklock reap --wait watches", 2, true
	return [][]succession{
		{waits},
		{restarted},
		{reaped},
		{
			{name: zkLock, timeout: "session 1s (granted: 4s)", library: "zk", ttl: time.Second, chains: 10, beat: 1300 * time.Millisecond},
			{name: redsync, timeout: "key 8s", library: "redsync", servers: redsync, ttl: 8 * time.Second, chains: 10, beat: 8 * time.Second / 3},
		},
		{
			{name: ours, timeout: session, library: "zklock", ttl: 10 * time.Second, chains: 10, beat: 3 * time.Second},
			{name: curator, timeout: "session 60s (granted: 40s)", library: "curator", ttl: time.Minute, chains: 17, beat: 13 * time.Second},
			{name: kazooLock, timeout: session, library: "kazoo", ttl: 10 * time.Second, chains: 10, beat: 3 * time.Second},
			{name: etcd, timeout: "lease 60s", library: "etcd", servers: etcd, ttl: time.Minute, chains: 25, beat: 20 * time.Second},
		},
	}
}

// rowKilled begins the name of the workload, and the number of servers follows it.
const rowKilled = "holder killed, "

// killed is the workload of the successions on n servers.
func killed(n int) row {
	r := row{name: fmt.Sprintf("%s%d servers", rowKilled, n), killed: true}
	if n == 1 {
		r.name = rowKilled + "1 server"
	} else {
		r.targets = []target{
			{of: inSight, figure: "p50", most: .05, unit: "s until the process that waits has the lock, p50"},
			{of: inSight, figure: "p99", most: 1, unit: "the same, p99"},
		}
	}
	return r
}

// failover measures the successions on one server and on three, or on existing servers.
func failover(ctx context.Context, o options, pattern *regexp.Regexp, out io.Writer) error {
	counts, before := []int{1, 3}, processorTime()
	if o.zk != "" {
		counts = []int{strings.Count(o.zk, ",") + 1}
	}
	dir, err := os.MkdirTemp("", "zklock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	t, err := buildTools(ctx, dir)
	if err != nil {
		return err
	}
	var rep report
	for _, n := range counts {
		b, versions, leave, err := begin(ctx, o, n)
		if err != nil {
			return err
		}
		rep.Head = machine(b, versions, counts...)
		res, err := b.killAll(ctx, t, n, pattern, o.kills)
		leave()
		if err != nil {
			return err
		}
		rep.Results = append(rep.Results, res)
	}
	rep.Head = append(rep.Head, fmt.Sprintf("%d kills for each figure, at random moments between two heartbeats", o.kills))
	return rep.write(o, out, before)
}

// killAll measures the successions whose names match a pattern.
func (b *runner) killAll(ctx context.Context, t tools, n int, pattern *regexp.Regexp, kills int) (result, error) {
	res := result{Row: killed(n).name, Rounds: 1, Turns: make(map[string][]figures), Absent: make(map[string]string), row: killed(n)}
	dir, err := os.MkdirTemp("", "zklock-bench-")
	if err != nil {
		return res, err
	}
	defer os.RemoveAll(dir)
	for i, side := range successions() {
		side = slices.DeleteFunc(side, func(s succession) bool { return !pattern.MatchString(s.name) })
		seconds, errs := make([][]float64, len(side)), make([]error, len(side))
		var wg sync.WaitGroup
		for j, s := range side {
			b.say("%s: %s ...", res.Row, s.name)
			wg.Go(func() {
				seconds[j], errs[j] = b.kill(ctx, t, s, filepath.Join(dir, fmt.Sprintf("row-%d-%d", i, j)), kills)
			})
		}
		wg.Wait()
		if ctx.Err() != nil {
			return res, ctx.Err()
		}
		for j, s := range side {
			if errors.Is(errs[j], errBroken) {
				return res, fmt.Errorf("%s: %w", s.name, errs[j])
			}
			if errs[j] != nil {
				b.say("%s: without %s: %v", res.Row, s.name, errs[j])
				res.Absent[s.name] = errs[j].Error()
				continue
			}
			slices.Sort(seconds[j])
			last := len(seconds[j]) - 1
			res.Who = append(res.Who, s.name)
			res.Turns[s.name] = []figures{{"total": float64(last + 1), "p50": median(seconds[j]), "p99": seconds[j][min(last, (last+1)*99/100)]}}
		}
	}
	return res, nil
}

// successors returns a table: the seconds from the death of a holder until the next one has the lock.
func successors(results []result) table {
	t := table{head: []string{"seconds until the lock has its next holder", "time-out"}}
	for _, res := range results {
		t.head = append(t.head, strings.TrimPrefix(res.Row, rowKilled)+": p50", "p99")
	}
	for _, s := range slices.Concat(successions()...) {
		line := []string{s.name, s.timeout}
		for _, res := range results {
			for _, figure := range []string{"p50", "p99"} {
				cell := ""
				if res.has(s.name, figure) {
					cell = fmt.Sprintf("%.3g", res.median(s.name, figure))
				}
				line = append(line, cell)
			}
		}
		if slices.ContainsFunc(results, func(res result) bool { return len(res.Turns[s.name]) > 0 }) {
			t.lines = append(t.lines, line)
		}
	}
	return t
}
