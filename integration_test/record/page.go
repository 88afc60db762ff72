package main

import (
	_ "embed"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// found is the list of what was found and mended, and of failures of other libraries.
//
//go:embed found.txt
var found string

// intro begins the page.
const intro = `<!-- Written by make track-record. Do not edit. -->

# Track record

What the suites that look for bugs did when this page was last written, what they have found so far, and the tests that
would find the failures of other lock libraries. [CONTRIBUTING.md](../CONTRIBUTING.md) has the commands.

`

// page is the document.
type page struct {
	date     time.Time
	machine  string
	outcomes []outcome
}

// machine describes the machine.
func machine() string {
	return fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
}

// write writes the page.
func (p page) write(w io.Writer) {
	var sum outcome
	var table strings.Builder
	for _, o := range p.outcomes {
		o.row(&table, o.suite.name)
		if o.failed != "" {
			continue // the run does not count
		}
		sum.took += o.took
		for c := range columns {
			if o.has[c] {
				sum.counts[c] += o.counts[c]
			}
		}
	}
	for c := range columns {
		sum.has[c] = true
	}
	sum.row(&table, "all")

	fmt.Fprint(w, intro)
	fmt.Fprintf(w, "Written on %s, after %.1f hours on %s.\n\n", p.date.Format(time.DateOnly), sum.took.Hours(), p.machine)
	fmt.Fprintf(w, "| suite | minutes | %s |\n|---|%s\n%s\n", strings.Join(titles[:], " | "), strings.Repeat("--:|", int(columns)+1), &table)
	for _, o := range p.outcomes {
		if o.failed != "" {
			fmt.Fprintf(w, "The run of %s does not count: %s.\n\n", o.suite.name, o.failed)
		}
		if day := o.at.Format(time.DateOnly); day != p.date.Format(time.DateOnly) {
			fmt.Fprintf(w, "The run of %s is from %s.\n\n", o.suite.name, day)
		}
	}
	fmt.Fprint(w, "A violation is a test that failed, or a deliberate bug that no test found. The suites inject the faults, and the faults cost the\nlocks.\n\n## The suites\n\n")
	for _, o := range p.outcomes {
		fmt.Fprintf(w, "- **%s**: %s\n", o.suite.name, o.suite.what)
	}
	fmt.Fprintf(w, "\n## Found and mended\n\n%s", found)
}

// row writes a row of the table.
func (o outcome) row(w io.Writer, name string) {
	fmt.Fprintf(w, "| %s | %.1f |", name, o.took.Minutes())
	for c := range columns {
		if o.has[c] {
			fmt.Fprintf(w, " %s |", grouped(o.counts[c]))
		} else {
			fmt.Fprint(w, " |")
		}
	}
	fmt.Fprintln(w)
}

// grouped writes a number with commas.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
