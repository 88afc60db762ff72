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

What the suites that look for bugs did in one run, what they have found, and the tests that would find the failures of other
lock libraries. [CONTRIBUTING.md](../CONTRIBUTING.md) has the commands.

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
		o.row(&table)
		if o.failed != "" {
			continue // the run does not count
		}
		sum.took += o.took
		for c := range columns {
			if o.has[c] {
				sum.has[c] = true
				sum.counts[c] += o.counts[c]
			}
		}
	}
	fmt.Fprintf(&table, "| all | | %.1f | %s |\n", sum.took.Minutes(), sum)

	fmt.Fprint(w, intro)
	fmt.Fprintf(w, "Written on %s, after %.1f hours on %s.\n\n", p.date.Format(time.DateOnly), sum.took.Hours(), p.machine)
	fmt.Fprintf(w, "| suite | what it does | minutes | figures |\n|---|---|--:|---|\n%s\n", &table)
	for _, o := range p.outcomes {
		if o.failed != "" {
			fmt.Fprintf(w, "The run of %s does not count: %s.\n\n", o.suite.name, o.failed)
		}
		if day := o.at.Format(time.DateOnly); day != p.date.Format(time.DateOnly) {
			fmt.Fprintf(w, "The run of %s is from %s.\n\n", o.suite.name, day)
		}
	}
	fmt.Fprint(w, "A violation is a test that failed, or a deliberate bug that no test found. The locks were lost to faults.\n\n")
	fmt.Fprintf(w, "## Found and mended\n\n%s", found)
}

// row writes a row of the table. It has the violations only if there are some: those of all suites
// are in the last row.
func (o outcome) row(w io.Writer) {
	o.has[violations] = o.counts[violations] > 0
	fmt.Fprintf(w, "| %s | %s | %.1f | %s |\n", o.suite.name, o.suite.what, o.took.Minutes(), o)
}

// grouped writes a number with commas.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
