package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
	library string        // the contestant; zklock's may be followed by a setting: see openLocker
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
	return [][]succession{
		{{name: inSight, timeout: session, library: ours, dirs: 1, chains: 1, beat: moment}},
		{{name: "zklock, session_dir, the killed process is restarted", timeout: session, library: ours, dirs: 1, restart: true, chains: 1, beat: moment}},
		// No holder watches the directory of the one before it.
		{{name: "zklock, session_dir, only zklock reap --wait watches", timeout: session, library: ours, dirs: 2, reaped: true, chains: 1, beat: moment}},
		{
			{name: zkLock, timeout: "session 1s (granted: 4s)", library: zkLockExample, chains: 10, beat: 1300 * time.Millisecond},
			{name: redsync, timeout: "key 8s", library: redsync, chains: 10, beat: 4 * time.Second},
		},
		{
			{name: ours, timeout: session, library: ours, chains: 10, beat: 3 * time.Second},
			{name: curator, timeout: "session 60s (granted: 40s)", library: curator, chains: 17, beat: 13 * time.Second},
			{name: kazooLock, timeout: session, library: kazooLock, chains: 10, beat: 3 * time.Second},
			{name: etcd, timeout: "lease 60s", library: etcd, chains: 25, beat: 20 * time.Second},
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
	var rep report
	for _, n := range counts {
		b, versions, leave, err := begin(ctx, o, n)
		if err != nil {
			return err
		}
		rep.Head = machine(b, versions, counts...)
		res, err := b.killAll(ctx, n, pattern, o.kills)
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
func (b *runner) killAll(ctx context.Context, n int, pattern *regexp.Regexp, kills int) (result, error) {
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
				seconds[j], errs[j] = b.kill(ctx, s, filepath.Join(dir, fmt.Sprintf("sessions-%d-%d", i, j)), kills)
			})
		}
		wg.Wait()
		if ctx.Err() != nil {
			return res, ctx.Err()
		}
		for j, s := range side {
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

// successors returns the heads and the rows of a table: the seconds from the death of a holder until
// the next one has the lock.
func successors(results []result) (head []string, lines [][]string) {
	head = []string{"seconds until the lock has its next holder", "time-out"}
	for _, res := range results {
		head = append(head, strings.TrimPrefix(res.Row, rowKilled)+": p50", "p99")
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
			lines = append(lines, line)
		}
	}
	return head, lines
}

// kill kills holders and returns the seconds until each had a successor. The session directories'
// paths begin with dir.
func (b *runner) kill(ctx context.Context, s succession, dir string, kills int) ([]float64, error) {
	var reapers team
	defer func() { reapers.close() }()
	var dirs []string
	for i := range s.dirs {
		dirs = append(dirs, fmt.Sprintf("%s-%d", dir, i))
		if !s.reaped {
			continue
		}
		cmd, err := b.ours(reaping + dirs[i])()
		if err != nil {
			return nil, err
		}
		p, err := startProcess("reaper", cmd)
		if err != nil {
			return nil, err
		}
		reapers = append(reapers, p)
	}
	chains := min(s.chains, kills)
	seconds, errs := make([][]float64, chains), make([]error, chains)
	var wg sync.WaitGroup
	for i := range chains {
		c := chain{b: b, succession: s, dirs: dirs, lock: fmt.Sprintf("%s-%d", filepath.Base(dir), i)}
		wg.Go(func() { seconds[i], errs[i] = c.run(ctx, (kills+i)/chains) })
	}
	wg.Wait()
	return slices.Concat(seconds...), errors.Join(errs...)
}

// chain is a series of holders of one name.
type chain struct {
	b *runner
	succession
	dirs    []string
	lock    string // the name
	holders int    // the number of holders so far
}

// run kills so many holders.
func (c *chain) run(ctx context.Context, kills int) (seconds []float64, err error) {
	holder, err := c.next()
	if err != nil {
		return nil, err
	}
	defer func() { holder.close() }()
	if _, err := holder.answer("done", patience); err != nil {
		return nil, err
	}
	for lost := 0; len(seconds) < kills; {
		next, took, err := c.succeed(ctx, holder)
		if next != nil {
			holder.close()
			holder = next
		}
		switch {
		case errors.Is(err, errLost) && lost < kills:
			lost++
			c.b.say("%s: %v", c.name, err)
		case err != nil:
			return nil, err
		default:
			seconds = append(seconds, took)
		}
	}
	return seconds, nil
}

// errLost is the error if a holder that lives has lost the lock, because the machine was too busy for
// its heartbeats. Its successor is the holder then, and nothing was measured.
var errLost = errors.New("a holder had lost the lock before it was killed")

// queued is how long a process that waits gets until it is in the queue.
const queued = 300 * time.Millisecond

// succeed kills the holder at a random moment, and returns the next one and the seconds until that
// has the lock.
func (c *chain) succeed(ctx context.Context, holder *process) (next *process, seconds float64, err error) {
	if !c.restart {
		if next, err = c.next(); err != nil {
			return nil, 0, err
		}
	}
	select {
	case <-time.After(queued + rand.N(c.beat)):
	case <-ctx.Done():
		return next, 0, ctx.Err()
	}
	if next != nil && len(next.lines) > 0 {
		if _, err := next.answer("done", patience); err != nil {
			return next, 0, err
		}
		if _, err := holder.ask("release"); err != nil {
			return next, 0, fmt.Errorf("%w: %w", errLost, err)
		}
		return next, 0, fmt.Errorf("%s: two processes had the lock at once", c.name)
	}
	died := time.Now()
	if err := holder.cmd.Process.Kill(); err != nil {
		return next, 0, fmt.Errorf("%s has ended by itself: %w: %s", holder.name, err, holder.stderr.String())
	}
	if c.restart {
		holder.close() // as a supervisor waits for the end
		if next, err = c.next(); err != nil {
			return nil, 0, err
		}
	}
	_, err = next.answer("done", patience)
	return next, time.Since(died).Seconds(), err
}

// next starts a process that acquires the lock.
func (c *chain) next() (*process, error) {
	start := c.b.start[c.library]
	if c.dirs != nil {
		start = c.b.ours(c.library + ", session_dir=" + c.dirs[c.holders%len(c.dirs)])
	}
	if start == nil {
		return nil, errors.New("there is no program that measures it: see -peers")
	}
	c.holders++
	cmd, err := start()
	if err != nil {
		return nil, err
	}
	p, err := startProcess(c.name, cmd)
	if err != nil {
		return nil, err
	}
	if !c.restart {
		_, err = p.ask("versions") // it answers when it has its session
	}
	if err == nil {
		err = p.send("hold %s", c.lock)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}
