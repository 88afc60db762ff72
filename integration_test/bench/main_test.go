package main

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/integration_test/bench/plot"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// TestMain makes this binary a worker if the environment says so, as the command does.
func TestMain(m *testing.M) {
	if text := os.Getenv(workerEnv); text != "" {
		exit(work(text))
	}
	os.Exit(m.Run())
}

// TestEveryRowYieldsItsFigures runs every workload, small and short. The figures mean
// nothing, but each target has to have its figure.
func TestEveryRowYieldsItsFigures(t *testing.T) {
	long.Test(t, "every row of the benchmarks runs")
	ensemble.Require(t)
	zk := ensemble.Start(t, ensemble.Config{TickTime: 2 * time.Second})
	b := &runner{servers: &servers{hosts: zk.Hosts()}, rounds: 1, length: 100 * time.Millisecond, say: t.Logf, start: make(map[string]func() (*exec.Cmd, error))}
	for _, library := range inside {
		b.start[library] = b.ours(library)
	}
	lacking := make(map[string]bool)
	for name, prepare := range foreign {
		start, _, err := prepare(t.TempDir(), zk.Hosts())
		if err != nil {
			t.Log(err)
			start = func() (*exec.Cmd, error) { return nil, err }
			lacking[name] = true
		}
		b.start[name] = start
	}
	for _, r := range slices.Concat(rows(), overloads(usual), recorded()) {
		r.goroutines = min(r.goroutines, 4)
		r.processes = min(r.processes, 2)
		if r.load != nil {
			patient := *r.load
			patient.wait, r.load = time.Second, &patient // a busy machine gives no lock within milliseconds
		}
		who := append([]string{cmp.Or(r.lead, ours)}, r.who...)
		for _, p := range r.peers {
			if foreign[p] != nil {
				who = append(who, p)
			}
		}
		res, err := b.run(t.Context(), r, who)
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		for _, v := range verdicts([]result{res}) {
			if v.Missing != "" && !lacking[v.Against] {
				t.Errorf("%s: no figure for %s against %q: %s", v.Row, v.Figure, v.Against, v.Missing)
			}
		}
		for who, why := range res.Absent {
			if !lacking[who] {
				t.Errorf("%s: without %s: %s", r.name, who, why)
			}
		}
		for _, who := range res.Who {
			if f := res.Turns[who]; len(f) != 1 || f[0]["total"] < 1 {
				t.Errorf("%s: %s did nothing: %v", r.name, who, f)
			}
		}
	}
}

func TestTargetsAreJudgedByRatiosWithinRounds(t *testing.T) {
	// The machine was ten times slower in the second round: the ratio is the same.
	r := result{Turns: map[string][]figures{
		ours:   {{"rate": 300, "p": 2}, {"rate": 30, "p": 4}, {"rate": 500, "p": 3}},
		zkLock: {{"rate": 100, "p": 8}, {"rate": 10, "p": 4}, {"rate": 100, "p": 9}},
	}}
	for _, c := range []struct {
		target target
		want   float64
		met    bool
	}{
		{rateOf(zkLock, 3), 3, true},
		{rateOf(zkLock, 3.1), 3, false},
		{target{figure: "p", against: zkLock, inverse: true, least: 3}, 3, true},
		{target{figure: "p", against: zkLock, most: .3}, 1 / 3., false},
		{target{figure: "p", most: 3}, 3, true},
		{target{figure: "p", most: 2}, 3, false},
	} {
		got, ok := r.measured(c.target)
		if !ok || got != c.want || c.target.met(got) != c.met {
			t.Errorf("%+v: %v (known: %v, met: %v), want %v (met: %v)", c.target, got, ok, c.target.met(got), c.want, c.met)
		}
	}
	for _, missing := range []target{rateOf(etcd, 1), {figure: "nothing", most: 1}} {
		if got, ok := r.measured(missing); ok {
			t.Errorf("%+v: got %v without a measurement", missing, got)
		}
	}
}

// TestRunsAreToldApart: the spread is that of the medians of the runs, and not of single turns.
func TestRunsAreToldApart(t *testing.T) {
	turns := func(mine ...float64) map[string][]figures {
		all := make(map[string][]figures)
		for _, v := range mine {
			all[ours] = append(all[ours], figures{"rate": v})
			all[zkLock] = append(all[zkLock], figures{"rate": 10})
		}
		return all
	}
	r := result{Rounds: 3, Who: []string{ours, zkLock}, Turns: turns(10, 30, 900), Absent: map[string]string{}}
	if low, high, ok := r.spread(rateOf(zkLock, 1)); ok {
		t.Errorf("one run has a spread: %v to %v", low, high)
	}
	r.add(result{Turns: turns(40, 1, 50)})
	r.add(result{Turns: turns(20, 20, 20)})
	if low, high, ok := r.spread(rateOf(zkLock, 1)); !ok || low != 2 || high != 4 {
		t.Errorf("spread: %v to %v (known: %v), want 2 to 4", low, high, ok)
	}
	if m, ok := r.measured(rateOf(zkLock, 1)); !ok || m != 2 {
		t.Errorf("measured: %v (known: %v), want the median of all nine turns, 2", m, ok)
	}
	r.add(result{Turns: turns(1, 1, 1), Absent: map[string]string{zkLock: "it failed"}})
	if m, ok := r.measured(rateOf(zkLock, 1)); ok || len(r.Who) != 1 {
		t.Errorf("a contestant that was absent from one run: %v of %v, want none", m, r.Who)
	}
}

func TestProcessesAreCombined(t *testing.T) {
	f := combine([]figures{
		{"cycles": 100, "total": 120, "seconds": 1, "acquire50": 5},
		{"cycles": 50, "total": 60, "seconds": 1, "acquire50": 7},
	})
	for figure, want := range map[string]float64{"cycles": 150, "total": 180, "rate": 150, "even": .5, "acquire50": 6} {
		if f[figure] != want {
			t.Errorf("%s: %v, want %v", figure, f[figure], want)
		}
	}
}

// A contestant that completes no cycle has no times: a target does not take its 0 for a short time.
func TestNoCyclesTakeNoTime(t *testing.T) {
	slow := map[string][]figures{
		ours:  {combine([]figures{{"cycles": 0, "seconds": 1, "acquire50": 0}})},
		floor: {combine([]figures{{"cycles": 9, "seconds": 1, "acquire50": 5}})},
	}
	for _, target := range []target{{figure: "acquire50", against: floor, most: 1.35}, {figure: "acquire50", most: 1}} {
		if got, ok := (result{Turns: slow}).measured(target); ok {
			t.Errorf("%v: got %v without a cycle", target, got)
		}
	}
	if f := combine([]figures{{"cycles": 0, "seconds": 1, "acquire50": 0}, {"cycles": 9, "seconds": 1, "acquire50": 5}}); f["acquire50"] != 5 || f["even"] != 0 {
		t.Errorf("when one of two processes had no cycles: %v, want acquire50 5 and even 0", f)
	}
}

func TestTimeTakenByTheHostIsThatOfThisRun(t *testing.T) {
	before := shares{all: 100, stolen: 10}
	if got, want := (shares{all: 200, stolen: 30}).since(before), "20% of the processors' time was taken by the host"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := before.since(before); got != "" {
		t.Errorf("%q for an interval of no time, want nothing", got)
	}
	if s := processorTime(); runtime.GOOS == "linux" && (s.all <= s.stolen || s.stolen < 0) {
		t.Errorf("processorTime returned %+v, want a share less than all time", s)
	}
}

func TestTablesHaveAllColumns(t *testing.T) {
	r := result{Row: "w", Rounds: 1, Who: []string{ours, zkLock}, row: row{targets: []target{rateOf(zkLock, 2), rateOf(etcd, 2)}}, Absent: map[string]string{etcd: "not installed"},
		Turns: map[string][]figures{ours: {{"rate": 300, "acquire50": 1500}}, zkLock: {{"rate": 100, "acquire50": 3000}}}}
	waits := result{Row: "x", Who: []string{ours}, row: row{wait: true}, Turns: map[string][]figures{ours: {{"writes": 1.875}}}}
	rep := report{Head: []string{"a machine"}, Results: []result{r, waits}, Verdict: verdicts([]result{r})}
	var b bytes.Buffer
	if err := rep.markdown(&b); err != nil {
		t.Fatal(err)
	}
	r.add(result{Turns: map[string][]figures{ours: {{"rate": 400, "acquire50": 1500}}, zkLock: {{"rate": 100, "acquire50": 3000}}}})
	if line := strings.Join(verdicts([]result{r})[0].line(), " | "); !strings.HasSuffix(line, "≥2x | 3.5x | 3x–4x | ok") {
		t.Errorf("the verdict of two runs is %q", line)
	}
	for _, want := range []string{
		"- a machine\n", "|---|---|---|---|---|\n| w | cycles/s | zk.Lock | ≥2x | 3x |\n", "|  | cycles/s | etcd | ≥2x | not installed |\n",
		"| w | zklock | 300 | 1.5ms |", "|  | zk.Lock | 100 | 3ms |", "| 3ms |  | 3x |\n", "| x | zklock | 1.88 writes/min |  |  |  |\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestPictureIsWellFormedAndHasEveryPoint(t *testing.T) {
	var b bytes.Buffer
	err := plot.Write(&b, []plot.Panel{{Title: "a < b", X: "x", Y: "y", Series: []plot.Series{
		{Name: "one", Points: []plot.Point{{X: 1, Y: 10}, {X: 100, Y: 2000}}},
		{Name: "two", Points: []plot.Point{{X: 10, Y: 50}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	marks := 0
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && (e.Name.Local == "circle" || e.Name.Local == "rect") {
			for _, a := range e.Attr {
				var at float64
				if _, err := fmt.Sscan(a.Value, &at); err == nil && strings.HasSuffix(a.Name.Local, "y") && (at < 30 || at > 330) {
					t.Errorf("a mark at %s=%s is outside of the picture", a.Name.Local, a.Value)
				}
			}
			marks++
		}
	}
	// Three points, two marks in the legend, and the background.
	if marks != 6 {
		t.Errorf("%d marks, want 6", marks)
	}
}
