package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest"
	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
	"github.com/zklock/go-zklock/contrib/locktest/servers"
)

// comparison is what the flags for the comparison say.
type comparison struct {
	document, results string
	runs              int
}

// quiet is the fault of the runs without any.
const quiet fault.Kind = "none"

// cell is the result of one run of a library with one fault: a line of the file with the results.
type cell struct {
	Library string
	Version string
	Tool    string // the commit of locktest
	Servers string
	Fault   fault.Kind
	Run     int // from 1; also the seed
	For     time.Duration
	TTL     time.Duration

	Distance time.Duration `json:",omitempty"` // between clients and servers, one way

	At     time.Time
	Judged bool // porcupine had an answer in time, and agrees

	Faults, Grants, Failed, Losses int
	Duration                       time.Duration
	PerSecond                      float64 // grants, until the end of the workload
	Verdict                        judge.Verdict
	Overlapped                     int `json:",omitempty"` // holds during which others were granted, of which Verdict counts each
	Stuck                          []string
	Crashes                        int              `json:",omitempty"`
	Leftovers                      []judge.Leftover `json:",omitempty"`
	Waits                          []time.Duration
	Reasons                        map[string]int // why acquisitions and releases failed, and how many

	Deadlocks *judge.Deadlocks `json:",omitempty"` // of a run of philosophers
	Silence   *judge.Silence   `json:",omitempty"` // of a run of -silent
}

// compare runs what the file of results lacks, and writes the document. It can be stopped and started again. All
// libraries have had a run before one has the next, so a machine that is busy for an hour slows all of them.
func (o options) compare(ctx context.Context) error {
	have, err := readCells(o.comparison.results)
	if err != nil {
		return err
	}
	if o.config.Distance > 0 && o.philosophers == 0 {
		return errors.New("-distance: the document has runs at a distance of -philosophers only")
	}
	chosen, err := regexp.Compile("^(" + cmp.Or(o.library, ".*") + ")$")
	if err != nil {
		return fmt.Errorf("-library: %w", err)
	}
	for run := 1; run <= o.comparison.runs; run++ {
		for _, l := range libraries {
			if chosen.MatchString(l.name) {
				if err := o.fill(ctx, l, run, have); err != nil {
					return err
				}
			}
		}
	}
	cells, err := readCells(o.comparison.results)
	if err != nil {
		return err
	}
	switch {
	case o.philosophers > 0:
		return writeSection(o.comparison.document, philosophersHead, philosophersSection(cells))
	case o.silent:
		return writeSection(o.comparison.document, silentHead, silentSection(cells))
	case usual(o.config.TTL):
		return writeSection(o.comparison.document, usualHead, usualSection(cells))
	}
	return writeDocument(o.comparison.document, cells)
}

// compared are those of some faults that the document has: all but those that only the chaos test of zklock needs.
func compared(kinds []fault.Kind) []fault.Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k fault.Kind) bool {
		return k == fault.StopLeader || k == fault.StopFollower || k == fault.DropRoute || k == fault.SlowClient
	})
}

// fill runs the cells of a library that are missing in a run.
func (o options) fill(ctx context.Context, l library, run int, have []cell) error {
	o.library, o.worker, o.backend = l.name, "", l.backend
	kinds, err := o.kinds()
	if err != nil {
		return err
	}
	switch {
	case o.philosophers > 0:
		kinds = []fault.Kind{philosophers}
	case !o.silent:
		kinds = append([]fault.Kind{quiet}, compared(kinds)...)
	}
	todos := slices.DeleteFunc(kinds, func(k fault.Kind) bool {
		return slices.ContainsFunc(have, func(c cell) bool {
			return c.Library == l.name && c.Fault == k && c.Run == run && (c.Silence != nil) == o.silent && c.Distance == o.config.Distance &&
				usual(c.TTL) == usual(o.config.TTL)
		})
	})
	if len(todos) == 0 {
		return nil
	}
	dir, err := os.MkdirTemp("", "locktest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	log, err := os.Create(filepath.Join(dir, "workers.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	fmt.Fprintf(os.Stderr, "%s: building the worker\n", l.name)
	worker, err := l.command(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: starting %d servers of %s\n", l.name, o.servers, l.backend)
	ensemble, err := o.start(ctx, dir, []fault.Fault{{Kind: fault.JumpServer}})
	if err != nil {
		return err
	}
	defer ensemble.Close()
	version, tool := l.version(ctx, worker), commit(ctx, nil)
	server := serverVersion(ctx, l.backend)
	o.config.Seed = uint64(run)
	for i, kind := range todos {
		c := o.config
		c.Worker, c.Ensemble, c.Stderr, c.Progress = worker, ensemble, log, io.Discard
		if kind == fault.KillClient {
			c.For *= 3 // these runs measure waits, of which a kill has few
		}
		o := o
		o.config.For = c.For
		c.Faults = o.plan([]fault.Kind{kind})
		if kind == quiet || kind == philosophers {
			c.Faults, c.LongHolds = nil, 0 // these runs measure speed, and what a library does by itself
		}
		c.Names, c.Locks = nil, nil
		for n := range o.config.Names {
			c.Names = append(c.Names, fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(string(kind), " ", "-"), run, n+1))
		}
		began := time.Now()
		result, events, err := play(ctx, c)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", l.name, kind, err)
		}
		if wrong := l.mistakes(result); wrong != none && o.history != "" {
			path := filepath.Join(o.history, fmt.Sprintf("%s, %s, run %d.ndjson", l.name, kind, run))
			if err := cmp.Or(os.MkdirAll(o.history, 0o777), write(path, events)); err != nil {
				return err
			}
		}
		result.Library, result.Version, result.Tool, result.Servers = l.name, version, tool, server
		for i := range result.Leftovers {
			result.Leftovers[i].Command = l.name // its path is that of a folder that is gone
		}
		result.Fault, result.Run, result.At = kind, run, began.UTC().Truncate(time.Second)
		fmt.Fprintf(os.Stderr, "%s: %d of %d: %s, run %d: %s, %d grants, %v\n", l.name, i+1, len(todos), kind, run,
			l.mistakes(result), result.Grants, time.Since(began).Round(time.Second))
		if err := appendCell(o.comparison.results, result); err != nil {
			return err
		}
		if err := ensemble.Await(ctx); err != nil {
			return err
		}
	}
	return ensemble.Close()
}

// play runs one cell and judges it.
func play(ctx context.Context, c locktest.Config) (result cell, events []history.Event, err error) {
	events, err = locktest.Run(ctx, c)
	if err != nil {
		return cell{}, nil, err
	}
	f := judge.Measure(events)
	o, known := judge.Porcupine(judge.Holds(events), judgeLimit)
	if known && !o.Agrees(f.Verdict) {
		return cell{}, nil, fmt.Errorf("the judges differ: porcupine says %+v: this is a mistake of locktest", o)
	}
	reasons := make(map[string]int)
	for _, e := range events {
		if e.Kind == history.Failed {
			reasons[e.Reason]++
		}
	}
	var deadlocks *judge.Deadlocks
	if c.Philosophers {
		d := judge.MeasureDeadlocks(events)
		deadlocks = &d
	}
	var silence *judge.Silence
	if len(c.Long) > 0 {
		s := judge.MeasureSilence(events)
		silence = &s
	}
	overlapped := make(map[int]bool) // by id
	for _, h := range judge.Overlaps(judge.Holds(events)) {
		overlapped[h.ID] = true
	}
	return cell{
		Reasons: reasons, Deadlocks: deadlocks, Silence: silence, Overlapped: len(overlapped), Crashes: f.Crashes,
		For: c.For, TTL: c.TTL, Distance: c.Distance, Judged: known, Faults: f.Faults, Grants: f.Grants, Failed: f.Failed, Losses: f.Losses,
		Duration: f.Duration, PerSecond: f.PerSecond(), Verdict: f.Verdict, Stuck: f.Stuck, Leftovers: f.Leftovers, Waits: f.Waits,
	}, events, nil
}

// serverVersion asks the programs of a backend for their version.
func serverVersion(ctx context.Context, backend string) string {
	switch backend {
	case "etcd":
		first, _, _ := strings.Cut(output(ctx, "etcd", "--version"), "\n")
		return strings.TrimPrefix(first, "etcd Version: ")
	case "redis":
		_, version, _ := strings.Cut(output(ctx, "redis-server", "--version"), "v=")
		version, _, _ = strings.Cut(version, " ")
		return version
	}
	if home := os.Getenv(servers.HomeEnv); home != "" {
		return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(filepath.Base(home), "apache-"), "zookeeper-"), "-bin")
	}
	return output(ctx, "dpkg-query", "-W", "-f=${Version}", "zookeeper")
}

// readCells reads the results. A file that does not exist has none.
func readCells(path string) ([]cell, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var cells []cell
	for lines := json.NewDecoder(file); ; {
		var c cell
		switch err := lines.Decode(&c); {
		case errors.Is(err, io.EOF):
			return cells, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		cells = append(cells, c)
	}
}

// appendCell adds a result in one write, so that two programs can add to one file.
func appendCell(path string, c cell) (err error) {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, file.Close()) }()
	_, err = file.Write(append(line, '\n'))
	return err
}
