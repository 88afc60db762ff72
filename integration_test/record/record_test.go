package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// root is the folder of the module.
const root = "../.."

// The page is what the command writes from the ledger.
func TestPageIsWrittenFromTheLedger(t *testing.T) {
	entries, err := readLedger(filepath.Join(root, "docs/track-record.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	writeTo(&want, entries)
	got, err := os.ReadFile(filepath.Join(root, "docs/track-record.md"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Error("docs/track-record.md is not written from docs/track-record.ndjson: run make track-record RECORD=0s")
	}
}

// Each line of the ledger is of a suite, and has its figures. A line in which something went wrong says what that was.
func TestLedgerHasItsForm(t *testing.T) {
	entries, err := readLedger(filepath.Join(root, "docs/track-record.ndjson"))
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d lines, %v", len(entries), err)
	}
	for i, e := range entries {
		s := slices.IndexFunc(suites, func(s suite) bool { return s.name == e.Suite })
		if _, err := time.Parse(time.DateOnly, e.Day); err != nil || s < 0 || len(e.Commit) < 7 || e.On == "" {
			t.Errorf("line %d: %+v", i+1, e)
		}
		if e.Figures[keys[violations]] > 0 && e.Note == "" {
			t.Errorf("line %d has violations: write into note what they were", i+1)
		}
		if i > 0 && slices.ContainsFunc(entries[:i], e.same) {
			t.Errorf("line %d is about the same as one before", i+1)
		}
		for name := range e.Figures {
			if !slices.Contains(keys[:], name) {
				t.Errorf("line %d: unknown figure %s", i+1, name)
			}
		}
	}
}

// Each suite that the Makefile makes longer by a variable is on the page.
func TestEverySuiteIsInTheRecord(t *testing.T) {
	var all string
	for _, s := range suites {
		all += strings.Join(s.command(time.Minute, 7), " ") + " "
	}
	found := 0
	text, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\b(ZKLOCK_[A-Z_]+)=`).FindAllStringSubmatch(string(text), -1) {
		if m[1] == "ZKLOCK_FAULTS" || m[1] == "ZKLOCK_LONG" || m[1] == "ZKLOCK_SEED" || strings.HasPrefix(m[1], "ZKLOCK_TEST_") {
			continue // they make no suite longer
		}
		if found++; !strings.Contains(all, " "+m[1]+"=") && !strings.HasPrefix(all, m[1]+"=") {
			t.Errorf("no suite has %s, which the Makefile sets", m[1])
		}
	}
	if found < 8 {
		t.Errorf("only %d variables were found", found)
	}
	for _, command := range []string{"./integration_test/matrix", "./integration_test/mutants", " fuzz "} {
		if !strings.Contains(all, command) {
			t.Errorf("no suite runs %s", command)
		}
	}
	for _, s := range suites {
		if s.share < 1 {
			t.Errorf("%s has no share of the time", s.name)
		}
		if seeded := strings.Contains(strings.Join(s.command(time.Minute, 4242), " "), "4242"); seeded != s.seeded {
			t.Errorf("%s gets a seed: %v, want %v", s.name, seeded, s.seeded)
		}
	}
}

// Each row of what was found, here and in other libraries, names a test that exists, and no other.
func TestFoundNamesTestsThatExist(t *testing.T) {
	reference := regexp.MustCompile("`(?:([a-z_/]+)\\.)?(Test[A-Za-z0-9]+)`")
	texts := make(map[string]string) // by package
	rows := 0
	for row := range strings.Lines(found) {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| What") {
			continue
		}
		rows++
		named := reference.FindAllStringSubmatch(row, -1)
		if len(named) == 0 {
			t.Errorf("no test: %s", row)
		}
		for _, m := range named {
			pkg := m[1]
			if pkg == "" {
				pkg = "zklock"
			}
			if texts[pkg] == "" {
				texts[pkg] = tests(t, pkg)
			}
			if !strings.Contains(texts[pkg], "\nfunc "+m[2]+"(t *testing.T)") {
				t.Errorf("package %s has no test %s", pkg, m[2])
			}
		}
	}
	if rows < 50 {
		t.Errorf("%d rows were found, want at least 50", rows)
	}
}

// tests returns all test files of a package as one text.
func tests(t *testing.T, pkg string) string {
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", pkg, err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// The figures are read from what each suite prints; testdata has a piece of it for each.
func TestFiguresAreRead(t *testing.T) {
	want := map[string][columns]int{
		"simulation":             {cases: 10000, faults: 140419, held: 129924, lost: 12160},
		"simulation as shipped":  {cases: 400, faults: 33892, held: 4573, lost: 817},
		"core as shipped":        {cases: 3},
		"simulation of the wire": {cases: 120, faults: 1921, held: 1447, lost: 222},
		"nested simulation":      {cases: 40, held: 3449, deadlocks: 929},
		"philosophers":           {cases: 79, faults: 3, deadlocks: 9},
		"small cases":            {cases: 165},
		"mass losses":            {cases: 2000, lost: 176941},
		"elections, simulated":   {cases: 100, faults: 4220, held: 1800, lost: 320},
		"model of the lease":     {states: 1891531, bugs: 2},
		"deliberate bugs":        {bugs: 198},
		"fuzzing":                {cases: 30300},
		"chaos":                  {faults: 16, held: 9298, lost: 21},
		"chaos as shipped":       {faults: 17, held: 120238, lost: 8},
		"releases of ZooKeeper":  {cases: 762, servers: 2},
		"the command":            {cases: 6, faults: 6},
		"the command as shipped": {cases: 6, faults: 6},
		"elections on servers":   {cases: 40, faults: 10},
		"slots of a job":         {cases: 521, faults: 54},
		"slots of gocron":        {cases: 10},
		"mixed locks":            {held: 28193},
		"names used once":        {cases: 360000, held: 360000},
	}
	for _, s := range tested {
		text, err := os.ReadFile(filepath.Join("testdata", filepath.Base(s.file(".txt"))))
		if err != nil {
			t.Error(err)
			continue
		}
		o := judge(s, string(text), time.Minute, nil)
		if o.counts != want[s.name] || o.failed != "" {
			t.Errorf("%s: %v, %q, want %v", s.name, o.counts, o.failed, want[s.name])
		}
	}
}

// A suite that fails, or that does not print a figure, must not pass for one without violations:
// each failed test is a violation, and a run without a figure has failed.
func TestFailuresAreViolations(t *testing.T) {
	s := suite{name: "x", varied: true, figures: []figure{{cases, `(\d+) runs`}}}
	for output, want := range map[string]struct {
		err        error
		violations int
		failed     bool
	}{
		"3 runs\nok": {nil, 0, false},
		"nothing":    {nil, 0, true},
		"3 runs\n--- FAIL: TestA (1s)\n    --- FAIL: TestA/b (1s)\n--- FAIL: TestC\nFAIL": {os.ErrInvalid, 2, false},
		"--- FAIL: TestA (1s)\nFAIL": {os.ErrInvalid, 1, false},
		"3 runs\nkilled":             {os.ErrInvalid, 0, true},
	} {
		if o := judge(s, output, 0, want.err); o.counts[violations] != want.violations || (o.failed != "") != want.failed {
			t.Errorf("%q: %d violations, %q", output, o.counts[violations], o.failed)
		}
	}
	if got := grouped(1234567); got != "1,234,567" || !slices.Equal([]string{grouped(0), grouped(999), grouped(1000)}, []string{"0", "999", "1,000"}) {
		t.Errorf("1234567 is %s", got)
	}
}

// The judge's table has what is wrong. Another library that runs along has no tokens, so what it loses after fencing is not wrong.
func TestJudgesTableIsRead(t *testing.T) {
	text, err := os.ReadFile("testdata/judge.txt")
	if err != nil {
		t.Fatal(err)
	}
	row := func(title, n string) string {
		return regexp.MustCompile(`(\| `+title+` +\| +)\d+ \|`).ReplaceAllString(string(text), "${1}"+n+" |")
	}
	for _, c := range []struct {
		suite  suite
		output string
		want   [columns]int
	}{
		{judgeOf("keep", ""), string(text), [columns]int{held: 3816, faults: 15, lost: 7}},
		{judgeOf("keep", ""), row("overlaps after fencing", "4"), [columns]int{held: 3816, faults: 15, lost: 7, violations: 4}},
		{judgeWith("curator", ""), row("overlaps of work", "3"), [columns]int{held: 3816, faults: 15, lost: 7, violations: 3}},
		{judgeWith("curator", ""), row("names stuck after the faults", "2"), [columns]int{held: 3816, faults: 15, lost: 7, violations: 2}},
		{judgeWith("curator", ""), row("lost updates after fencing", "2"), [columns]int{held: 3816, faults: 15, lost: 7}},
	} {
		if o := judge(c.suite, c.output, time.Minute, nil); o.counts != c.want || o.failed != "" {
			t.Errorf("%s: %v, %q, want %v", c.suite.name, o.counts, o.failed, c.want)
		}
	}
	if o := judge(judgeWith("curator", ""), row("lost updates", "1"), time.Minute, os.ErrInvalid); o.failed != "" || o.counts[violations] > 0 {
		t.Errorf("a lost update of a library without tokens is a violation: %+v", o)
	}
	// A row that is missing, or a run that could not be done, is not one without violations.
	if o := judge(judgeOf("keep", ""), strings.Replace(string(text), "| names stuck after the faults ", "| stuck names ", 1), time.Minute, nil); o.failed == "" {
		t.Errorf("a table without the stuck names passed: %+v", o)
	}
	o := judge(judgeWith("curator", ""), string(text)+"\nlocktest: the judges differ\nexit status 2\n", time.Minute, os.ErrInvalid)
	if !strings.HasSuffix(o.failed, ": locktest: the judges differ") {
		t.Errorf("a run that could not be done: %+v, want its last error", o)
	}
	if words := strings.Join(judgeWith("zk", "").command(time.Minute, 7), " "); !strings.Contains(words, "-library=zklock:zk+zk ") {
		t.Error(words)
	}
}

// suiteOf is a suite for tests, whose run prints a figure.
func suiteOf(name string, share int) suite {
	return suite{
		name: name, share: share, seeded: true, varied: true, figures: []figure{{cases, `(\d+) runs`}},
		command: func(_ time.Duration, seed int64) []string {
			return []string{variable("A", seed), "sh", "-c", "echo 3 runs of $A"}
		},
	}
}

// round returns rounds with a ledger of their own, whose runs take no time but have minutes.
func round(t *testing.T, suites ...suite) *rounds {
	r := &rounds{suites: suites, ledger: &ledger{path: filepath.Join(t.TempDir(), "ledger")}, until: time.Now().Add(time.Hour), commit: "c0ffee00", wrote: func() error { return nil }}
	r.run = func(_ context.Context, s suite, _ time.Duration, _ int64) (outcome, error) {
		o := outcome{suite: s, at: time.Now(), took: time.Minute}
		o.counts[cases] = 3
		return o, nil
	}
	return r
}

// The next suite is the one that is furthest behind its share, also after a new start. One that does the same each time
// runs once a commit. A run that is interrupted is not in the ledger, and those before it are.
func TestRoundsAddToTheLedger(t *testing.T) {
	stop := errors.New("stopped")
	again := suiteOf("once", 1)
	again.once = true
	r := round(t, suiteOf("much", 3), suiteOf("little", 1), again)
	left, run := 0, r.run
	r.run = func(ctx context.Context, s suite, length time.Duration, seed int64) (outcome, error) {
		if left--; left < 0 {
			return outcome{}, stop
		}
		return run(ctx, s, length, seed)
	}
	want := map[string]int{}
	for _, more := range []map[string]int{{"much": 1, "little": 1, "once": 1}, {"much": 2}, {"much": 3, "little": 1}} {
		left = 0
		for name, n := range more {
			left += n
			want[name] += n
		}
		if err := r.serve(t.Context(), 0); !errors.Is(err, stop) {
			t.Fatal(err)
		}
		r.running = nil
		entries, err := readLedger(r.ledger.path)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, e := range entries {
			got[e.Suite] = e.Runs
			if e.Figures["cases"] != 3*e.Runs || e.Minutes != float64(e.Runs) || len(e.Seeds) != e.Runs || e.Commit != "c0ffee00" {
				t.Errorf("%+v", e)
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("runs: %v, want %v", got, want)
		}
	}
}

// A suite that mostly waits runs at the same time as another one. Of those that do not, one runs at a time.
func TestRoundsHaveLanes(t *testing.T) {
	works, too, waits := suiteOf("works", 1), suiteOf("works, too", 1), suiteOf("waits", 1)
	waits.waits = true
	for _, c := range []struct {
		suites []suite
		most   int32 // runs at a time
	}{{[]suite{works, waits}, 2}, {[]suite{works, too}, 1}, {[]suite{waits}, 1}} {
		synctest.Test(t, func(t *testing.T) {
			r := round(t, c.suites...)
			var now, most atomic.Int32
			r.run = func(_ context.Context, s suite, _ time.Duration, _ int64) (outcome, error) {
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				time.Sleep(time.Minute)
				return outcome{suite: s, at: time.Now(), took: time.Minute}, nil
			}
			r.until = time.Now().Add(time.Hour)
			if err := r.serve(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			entries, err := readLedger(r.ledger.path)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, e := range entries {
				got += e.Runs
			}
			if want := 60 * int(c.most); most.Load() != c.most || got != want {
				t.Errorf("%d runs, at most %d at a time, want %d and %d", got, most.Load(), want, c.most)
			}
		})
	}
}

// The command of a suite is interrupted with its children, and leaves no outcome.
func TestInterruptedRunEnds(t *testing.T) {
	t.Chdir(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	s := suiteOf("a, b: c", 1)
	s.command = func(time.Duration, int64) []string {
		return []string{"sh", "-c", `sh -c 'trap "touch interrupted; exit" INT; touch begun; while :; do sleep 0.05; done' | cat`}
	}
	go func() {
		defer cancel()
		for t.Context().Err() == nil {
			if _, err := os.Stat("begun"); err == nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := execute(ctx, s, time.Minute, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the end of the context", err)
	}
	if _, err := os.Stat("interrupted"); err != nil {
		t.Error("a child of the command was not interrupted")
	}
	o, err := execute(t.Context(), suiteOf("a, b: c", 1), time.Minute, 42)
	if err != nil || o.counts[cases] != 3 || o.failed != "" {
		t.Errorf("%+v, %v", o, err)
	}
	if text, err := os.ReadFile("bin/record/a-b-c.log"); err != nil || string(text) != "3 runs of 42\n" {
		t.Errorf("the log is %q, %v", text, err)
	}
}

// A run that fails keeps its history, and what it has printed, under its seed. One that does not keeps no history.
func TestFailedRunsKeepTheirHistory(t *testing.T) {
	t.Chdir(t.TempDir())
	for seed, wrong := range map[int64]int{7: 0, 8: 2} {
		s := judgeOf("keep", "")
		s.varied, s.figures = true, []figure{{held, `held (\d+)`}, {violations, `wrong (\d+)`}}
		s.command = func(length time.Duration, seed int64) []string {
			words := judgeOf("keep", "").command(length, seed)
			history := strings.TrimPrefix(words[slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, "-history=") })], "-history=")
			return []string{"sh", "-c", fmt.Sprintf("echo held 3, wrong %d; touch %s", wrong, history)}
		}
		if _, err := execute(t.Context(), s, time.Minute, seed); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob("bin/record/*")
	if want := []string{"bin/record/judge-keep-8.log", "bin/record/judge-keep-8.ndjson", "bin/record/judge-keep.log"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("%v, %v, want %v", files, err, want)
	}
}

// The page has the sums, the violations with their notes, and the runs that do not count.
func TestPageHasSums(t *testing.T) {
	var b strings.Builder
	writeTo(&b, []entry{
		{Day: "2030-05-20", Suite: "simulation", Commit: "aaaaaaaa", On: "a machine", Runs: 2, Minutes: 60, Figures: map[string]int{"cases": 3000}},
		{Day: "2030-05-21", Suite: "simulation", Commit: "bbbbbbbb", On: "a machine", Runs: 1, Minutes: 30, Figures: map[string]int{"cases": 5, "violations": 1}, Note: "It was a mistake of the test."},
		{Day: "2030-05-22", Suite: "chaos", Commit: "bbbbbbbb", On: "a machine", Void: []string{"killed"}},
	})
	for _, want := range []string{
		"1.5 hours of runs, from 2030-05-20 to 2030-05-22, at 2 commits, on a machine.\n",
		"| 3 | 90.0 | 3,005 schedules, 1 violations |", "| all | | 3 | 90.0 | 3,005 cases, 1 violations |",
		"- 2030-05-21, simulation at bbbbbbbb: violations: 1. It was a mistake of the test.\n",
		"- 2030-05-22, chaos at bbbbbbbb: a run does not count: killed.\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not have %q:\n%s", want, b.String()[:6000])
		}
	}
	if strings.Contains(b.String(), "no violation.") {
		t.Error("the page says that there was no violation")
	}
}
