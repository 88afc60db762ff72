package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/integration_test/bench/plot"
	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

// record is a turn of a workload with a load, with one version of zklock. Each is a line of a file.
type record struct {
	Load   string    `json:"load"`
	Core   string    `json:"core"` // one of cores
	Date   string    `json:"date"`
	Phases [3]int    `json:"phases"` // the seconds of each
	Grants []float64 `json:"grants"` // of each second
}

// cores are the names of the versions of zklock that are drawn, in order: before it was changed for
// loads that a lock cannot carry, and after.
var cores = []string{"before", "after"}

// recorded returns the workloads that are drawn.
func recorded() []row {
	const work, wait = 20 * time.Millisecond, 100 * time.Millisecond
	callers := func(what, kind string, n int, wait time.Duration) row {
		return overload(what, kind, n, load{wait: wait, work: work, calm: 3, turns: [3]int{4, 8, 8}})
	}
	arrivals := func(what, kind string, rate int, work time.Duration) row {
		r := overload(what, kind, rate, load{wait: time.Second, work: work, calm: 50, arrivals: true, turns: [3]int{4, 8, 8}})
		r.lead, r.targets = inMemory, nil
		return r
	}
	return []row{
		callers("mutex", worker.Mutex, 100, 20*time.Millisecond),
		callers("mutex", worker.Mutex, 1000, wait),
		callers("semaphore of 3", worker.Semaphore, 100, 50*time.Millisecond),
		callers("All of two mutexes", worker.Both, 100, wait),
		callers("WithoutHandover", worker.Alone, 100, wait),
		callers("RWMutex, 10% writers", worker.Mixed, 1000, wait),
		arrivals("mutex", worker.Mutex, 250, 5*time.Millisecond),
		arrivals("semaphore of 5", worker.Semaphore5, 125, work),
	}
}

// timeline draws the grants of each second. If the options name a core, it measures that before.
func timeline(ctx context.Context, o options, pattern *regexp.Regexp, out io.Writer) error {
	data := strings.TrimSuffix(o.timeline, ".svg") + ".ndjson"
	old, err := os.ReadFile(data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	records, err := readRecords(old)
	if err != nil {
		return fmt.Errorf("%s: %w", data, err)
	}
	if o.record != "" {
		if !slices.Contains(cores, o.record) {
			return fmt.Errorf("-record %q: want one of %q", o.record, cores)
		}
		if records, err = recordAll(ctx, o, pattern, records); err != nil {
			return err
		}
		if err := write(data, out, func(w io.Writer) error { return writeRecords(w, records) }); err != nil {
			return err
		}
	}
	return write(o.timeline, out, func(w io.Writer) error { return drawRecords(w, records) })
}

// recordAll measures the workloads that match a pattern, and replaces their records.
func recordAll(ctx context.Context, o options, pattern *regexp.Regexp, records []record) ([]record, error) {
	o.rounds, o.peers = 1, ""
	b, _, leave, err := begin(ctx, o, o.servers)
	if err != nil {
		return nil, err
	}
	defer leave()
	for _, r := range recorded() {
		if !pattern.MatchString(r.name) {
			continue
		}
		b.say("%s ...", r.name)
		res, err := b.run(ctx, r, []string{r.lead})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		next := record{strings.TrimPrefix(r.name, rowOverload), o.record, time.Now().UTC().Format(time.DateOnly), r.load.turns, res.Turns[r.lead][0].grants()}
		b.say("%v", next.Grants)
		records = slices.DeleteFunc(records, func(old record) bool { return old.Load == next.Load && old.Core == next.Core })
		records = append(records, next)
	}
	return records, nil
}

func readRecords(text []byte) (records []record, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

func writeRecords(w io.Writer, records []record) error {
	e := json.NewEncoder(w)
	for _, r := range records {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// drawRecords draws a timeline for each workload that has a record.
func drawRecords(w io.Writer, records []record) error {
	var all []plot.Timeline
	for _, r := range recorded() {
		t := plot.Timeline{Title: strings.TrimPrefix(r.name, rowOverload)}
		drawn := false
		for _, core := range cores {
			line := plot.Counts{Name: core}
			for _, rec := range records {
				if rec.Load == t.Title && rec.Core == core {
					line.Values, t.From, t.To, drawn = rec.Grants, rec.Phases[0], rec.Phases[0]+rec.Phases[1], true
				}
			}
			t.Lines = append(t.Lines, line)
		}
		if drawn {
			all = append(all, t)
		}
	}
	return plot.WriteTimelines(w, "grants of each second; grey: more callers than the lock carries", all)
}
