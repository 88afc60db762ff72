package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// found is the list of what was found and mended, and of failures of other libraries.
//
//go:embed found.txt
var found string

// intro begins the page.
const intro = `<!-- Written by make track-record. Do not edit. -->

# Track record

What the suites that look for bugs have done, what they have found, and the tests that would find the failures of other
lock libraries. [CONTRIBUTING.md](../CONTRIBUTING.md) has the commands, and [track-record.ndjson](track-record.ndjson) the days, commits
and seeds.

`

// outro explains the table.
const outro = `Hours are added up run by run, from the start of a command to its end, with builds and starts of servers. Several runs were made at the
same time, so less time has passed by the clock, and other programs may have used the machine. A violation is a test that failed, a
deliberate bug that no test found, or what the judge counts as a failure. The locks were lost to faults.

`

// under begins the table of settings.
const under = `
## Under which settings

Each suite prints the settings of its runs. The defaults are a session_timeout of 30s, on servers with ticks of 2s. The suites that
have short times are fast because of it: in the same minutes more happens, and where only their proportion matters nothing is lost. The
distance is one way, and 0s stands for processes of one machine. Suites without a row have no servers, or tests with settings of their own.

| suite | ticks | session_timeout | servers | distance | clients | bytes of a name |
|---|---|---|---|---|---|---|
`

// machine describes the machine.
func machine() string {
	return fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}

// sum is what the entries of a suite, or of all, add up to.
type sum struct {
	runs    int
	minutes float64
	counts  [columns]int
}

func (s *sum) add(e entry) {
	s.runs += e.Runs
	s.minutes += e.Minutes
	for c := range columns {
		s.counts[c] += e.Figures[keys[c]]
	}
}

// text has the figures that are not 0, with titles.
func (s *sum) text(title func(column) string) string {
	var parts []string
	for c := range columns {
		if n := s.counts[c]; n > 0 {
			parts = append(parts, grouped(n)+" "+title(c))
		}
	}
	return strings.Join(parts, ", ")
}

// writeTo writes the page of a ledger.
func writeTo(w io.Writer, entries []entry) {
	var all sum
	var days, commits, machines []string
	for _, e := range entries {
		all.add(e)
		days, commits, machines = append(days, e.Day), append(commits, e.Commit), append(machines, e.On)
	}
	fmt.Fprint(w, intro)
	if len(entries) > 0 {
		fmt.Fprintf(w, "%.1f hours of runs, from %s to %s, at %d commits, on %s.\n\n", all.minutes/60, slices.Min(days), slices.Max(days), len(distinct(commits)), strings.Join(distinct(machines), "; "))
	}
	fmt.Fprint(w, "| suite | what it does | runs | minutes | figures |\n|---|---|--:|--:|---|\n")
	for _, s := range suites {
		var of sum
		for _, e := range entries {
			if e.Suite == s.name {
				of.add(e)
			}
		}
		fmt.Fprintf(w, "| %s | %s | %d | %.1f | %s |\n", s.name, s.what, of.runs, of.minutes, of.text(s.title))
	}
	fmt.Fprintf(w, "| all | | %d | %.1f | %s |\n\n", all.runs, all.minutes, all.text(func(c column) string { return titles[c] }))
	if all.counts[violations] == 0 {
		fmt.Fprint(w, "There was no violation. ")
	}
	fmt.Fprint(w, outro)
	for _, e := range entries {
		if n := e.Figures[keys[violations]]; n > 0 || e.Note != "" {
			fmt.Fprintf(w, "- %s, %s at %s: violations: %d. %s\n", e.Day, e.Suite, e.Commit, n, e.Note)
		}
		for _, why := range e.Void {
			fmt.Fprintf(w, "- %s, %s at %s: a run does not count: %s.\n", e.Day, e.Suite, e.Commit, why)
		}
	}
	writeSettings(w, entries)
	writeClaims(w)
	fmt.Fprintf(w, "\n## Found and mended\n\n%s", found)
}

// writeSettings writes under which settings each suite has run last.
func writeSettings(w io.Writer, entries []entry) {
	head := under
	for _, s := range suites {
		cells := ""
		for _, e := range entries {
			if e.Suite == s.name {
				cells = cmp.Or(e.Under, cells)
			}
		}
		if cells != "" {
			fmt.Fprintf(w, "%s| %s | %s |\n", head, s.name, cells)
			head = ""
		}
	}
}

// distinct returns the different texts, in the order in which they appear.
func distinct(texts []string) (all []string) {
	for _, t := range texts {
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// grouped writes a number with commas.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
