package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// root is the folder of the module.
const root = "../.."

// The page has the form that the command writes: apart from its numbers, it is what the command
// would write now if each suite had run.
func TestPageHasItsForm(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/track-record.md"))
	if err != nil {
		t.Fatal(err)
	}
	p := page{date: time.Now(), machine: machine()}
	for _, s := range suites {
		o := outcome{suite: s, at: p.date}
		o.has[violations] = true
		for _, f := range s.figures {
			o.has[f.in] = true
		}
		p.outcomes = append(p.outcomes, o)
	}
	var want strings.Builder
	p.write(&want)
	got, form := strings.Split(withoutNumbers(string(text)), "\n"), strings.Split(withoutNumbers(want.String()), "\n")
	for i := range max(len(got), len(form)) {
		if i >= len(got) || i >= len(form) || got[i] != form[i] {
			t.Fatalf("docs/track-record.md differs from what make track-record writes in line %d:\n%q\nwant\n%q", i+1, line(got, i), line(form, i))
		}
	}
}

func line(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// withoutNumbers replaces the numbers of the table and the line about the machine, and leaves out
// runs that do not count, or are from another day.
func withoutNumbers(text string) string {
	text = regexp.MustCompile(`(?m)^The run of .* (does not count: |is from ).*\n\n`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`(?m)^Written on .*$`).ReplaceAllString(text, "Written")
	return regexp.MustCompile(`(?m)^\| .*$`).ReplaceAllStringFunc(text, func(row string) string {
		return regexp.MustCompile(`(\| |, )[\d,.]+ `).ReplaceAllString(row, "${1}0 ")
	})
}

// Each suite that the Makefile or the soak makes longer by a variable is on the page.
func TestEverySuiteIsInTheRecord(t *testing.T) {
	var all string
	for _, s := range suites {
		all += strings.Join(s.command(time.Minute, time.Minute), " ") + " " + strings.Join(s.command(time.Hour, time.Hour), " ") + " "
	}
	found := 0
	for _, file := range []string{"Makefile", ".ci/soak"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\b(ZKLOCK_[A-Z_]+)=`).FindAllStringSubmatch(string(text), -1) {
			if m[1] == "ZKLOCK_FAULTS" || m[1] == "ZKLOCK_LONG" || m[1] == "ZKLOCK_SEED" || strings.HasPrefix(m[1], "ZKLOCK_TEST_") {
				continue // they make no suite longer
			}
			if found++; !strings.Contains(all, " "+m[1]+"=") && !strings.HasPrefix(all, m[1]+"=") {
				t.Errorf("no suite has %s, which %s sets", m[1], file)
			}
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
	shares := 0
	for _, s := range suites {
		shares += s.share
	}
	if shares != 100 {
		t.Errorf("the shares of the time add up to %d percent", shares)
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
		"simulation":            {runs: 10000, faults: 140419, held: 129924, lost: 12160},
		"small cases":           {runs: 165},
		"mass losses":           {runs: 2000, lost: 176941},
		"elections, simulated":  {runs: 100, faults: 4220, held: 1800, lost: 320},
		"model of the lease":    {states: 1891531, bugs: 2},
		"deliberate bugs":       {bugs: 198},
		"fuzzing":               {runs: 30300},
		"chaos":                 {faults: 10, held: 8317, lost: 6},
		"releases of ZooKeeper": {runs: 762, servers: 2},
		"the command":           {runs: 6, faults: 6},
		"elections on servers":  {runs: 40, faults: 10},
		"slots of a job":        {runs: 521, faults: 54},
		"mixed locks":           {held: 28193},
		"names used once":       {runs: 360000, held: 360000},
	}
	for _, s := range suites {
		text, err := os.ReadFile(filepath.Join("testdata", filepath.Base(s.path(".txt"))))
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
	s := suite{name: "x", figures: []figure{{runs, `(\d+) runs`}}}
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

// A run whose suite was killed does not count: the page says so, and the sums leave it out. The
// page also names the runs of other days.
func TestPageSaysWhichRunsCount(t *testing.T) {
	day := time.Date(2030, 5, 20, 12, 0, 0, 0, time.UTC)
	some := func(name string, at time.Time, n int, failed string) outcome {
		o := outcome{suite: suite{name: name}, at: at, took: time.Hour, failed: failed}
		o.has[runs], o.counts[runs] = true, n
		return o
	}
	var b strings.Builder
	page{day, "a machine", []outcome{some("a", day, 3, ""), some("b", day, 40, "killed"), some("c", day.AddDate(0, 0, -2), 500, "")}}.write(&b)
	text := b.String()
	for _, want := range []string{"after 2.0 hours on a machine", "| b |  | 60.0 | 40 runs, killed |", "| all | | 120.0 | 503 runs |", "The run of b does not count: killed.", "The run of c is from 2030-05-18."} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not have %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "The run of a ") {
		t.Errorf("the page says of a run of its day:\n%s", text)
	}
}

// A page may have suites from earlier runs.
func TestOutcomesAreKept(t *testing.T) {
	t.Chdir(t.TempDir())
	s := suite{name: "a, b", figures: []figure{{runs, `(\d+) runs`}}, command: func(_, _ time.Duration) []string { return []string{"A=3", "sh", "-c", "echo $A runs"} }}
	if _, err := s.load(); err == nil {
		t.Error("a suite that was never run has an outcome")
	}
	made, err := s.run(t.Context(), time.Minute)
	if err != nil || made.counts[runs] != 3 || made.failed != "" {
		t.Fatalf("%v, %v", made, err)
	}
	kept, err := s.load()
	if err != nil || kept.String() != made.String() || kept.took != made.took || !kept.at.Equal(made.at) || made.at.IsZero() {
		t.Errorf("kept %v, %v, want %v", kept, err, made)
	}
}
