package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// column is a kind of figure.
type column int

const (
	cases column = iota
	faults
	states
	servers
	held
	lost
	deadlocks
	bugs
	violations
	columns // the number of kinds
)

// titles are their titles. A suite may have others.
var titles = [columns]string{"cases", "faults", "states", "releases run", "locks held", "locks lost", "deadlocks ended", "bugs put in and found", "violations"}

// keys are their names in the ledger.
var keys = [columns]string{"cases", "faults", "states", "releases", "held", "lost", "deadlocks", "bugs", "violations"}

// title returns the title of a suite's figures of a kind.
func (s suite) title(c column) string {
	if t := s.titles[c]; t != "" {
		return t
	}
	return titles[c]
}

// figure is a number that a suite prints. The pattern has one group. Its matches are added up if
// the group is a number, and counted if it is a text.
type figure struct {
	in      column
	pattern string
}

// outcome is what a suite has done.
type outcome struct {
	suite  suite
	at     time.Time // when the run ended
	took   time.Duration
	counts [columns]int
	has    [columns]bool // the suite has a figure there
	failed string        // why the run does not count, if that is not a test that failed

	settings string // the cells of the census, as package census prints them
}

// notDone is what go run prints if the judge of contrib/locktest could not do its run.
const notDone = "\nexit status 2\n"

// settings is the line of package census.
var settings = regexp.MustCompile(`(?m)settings: ((?:[^|\n]+\|){5}[^|\n]+)$`)

// failure is the line of a test that failed. Its subtests have their lines behind spaces.
var failure = regexp.MustCompile(`(?m)^--- FAIL: `)

// judge reads what a suite has printed. A figure that is missing or 0 is a failure: the suite
// did nothing, or its output has changed.
func judge(s suite, output string, took time.Duration, err error) outcome {
	o := outcome{suite: s, took: took}
	o.has[violations] = true
	for _, f := range s.figures {
		o.has[f.in] = true
		matches := regexp.MustCompile(f.pattern).FindAllStringSubmatch(output, -1)
		if f.in == violations && matches == nil {
			o.failed = "it has not printed all its figures of violations"
		}
		for _, m := range matches {
			n, isText := strconv.Atoi(m[1])
			if isText != nil {
				n = 1
			}
			o.counts[f.in] += n
		}
		if o.counts[f.in] == 0 && f.in < lost { // a short run may lose nothing
			o.failed = "it has not printed its " + s.title(f.in)
		}
	}
	if all := settings.FindAllStringSubmatch(output, -1); all != nil {
		o.settings = all[len(all)-1][1]
	} else if !s.varied {
		o.failed = "it has not printed its settings"
	}
	o.counts[violations] += len(failure.FindAllString(output, -1))
	switch {
	case o.counts[violations] > 0:
		o.failed = "" // what was found counts, although a run that ends early may lack figures
	case err != nil && (!s.peers || strings.Contains(output, notDone)):
		o.failed = reason(output, err)
	}
	return o
}

// exits are the last lines of go run.
var exits = regexp.MustCompile(`^exit status \d+$`)

// addresses are those from which something could not be fetched, and what follows.
var addresses = regexp.MustCompile(`https?://.*`)

// reason is why a command has failed: the last line that it has printed, or else its error.
func reason(output string, err error) string {
	for _, line := range slices.Backward(strings.Split(output, "\n")) {
		if line = strings.TrimSpace(line); line != "" && !exits.MatchString(line) {
			return fmt.Sprintf("%v: %.300s", err, addresses.ReplaceAllString(line, "(source)"))
		}
	}
	return err.Error()
}
