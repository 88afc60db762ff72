package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/history"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// sum adds up the cells of one library.
type sum struct {
	library
	cells []cell
	total cell
	rates []float64 // grants a second of each run without faults, in rising order

	versions []string
}

// sums adds up the cells by library, in the order of the document.
func sums(cells []cell) []sum {
	var all []sum
	for _, l := range libraries {
		s := sum{library: l}
		for _, c := range cells {
			if c.Library != l.name {
				continue
			}
			s.cells = append(s.cells, c)
			s.total.add(c)
			s.total.Servers = c.Servers
			if !slices.Contains(s.versions, c.Version) {
				s.versions = append(s.versions, c.Version)
			}
			if c.Fault == quiet {
				s.rates = append(s.rates, c.PerSecond)
			}
		}
		slices.Sort(s.rates)
		slices.Sort(s.total.Waits)
		if len(s.cells) > 0 {
			all = append(all, s)
		}
	}
	return all
}

// add adds the figures of another cell.
func (c *cell) add(o cell) {
	c.Faults += o.Faults
	c.Grants += o.Grants
	c.Failed += o.Failed
	c.Losses += o.Losses
	c.Duration += o.Duration
	c.Overlapped += o.Overlapped
	c.Verdict.Overlaps += o.Verdict.Overlaps
	c.Verdict.FencedOverlaps += o.Verdict.FencedOverlaps
	c.Verdict.Fell += o.Verdict.Fell
	c.Verdict.Lost += o.Verdict.Lost
	c.Verdict.FencedLost += o.Verdict.FencedLost
	c.Stuck = append(c.Stuck, o.Stuck...)
	c.Crashes += o.Crashes
	for reason, n := range o.Reasons {
		if c.Reasons == nil {
			c.Reasons = make(map[string]int)
		}
		c.Reasons[reason] += n
	}
	if o.Fault == fault.KillClient {
		c.Waits = append(c.Waits, o.Waits...)
	}
}

// failedBefore is of how many stuck names an acquisition had failed, so that the library may have left something behind.
func (s sum) failedBefore() (n int) {
	for _, c := range s.cells {
		for _, name := range c.Stuck {
			if slices.ContainsFunc(c.Leftovers, func(l judge.Leftover) bool {
				return l.Name == name && strings.HasPrefix(l.Last, string(history.Failed))
			}) {
				n++
			}
		}
	}
	return n
}

// none is what mistakes says if there are none.
const none = "0"

// mistakes says what a cell of a library has that a lock should not. Only tokens give a meaning to what it has
// after fencing.
func (l library) mistakes(c cell) string {
	var parts []string
	say := func(n int, one, many string) {
		switch {
		case n == 1:
			parts = append(parts, one)
		case n > 1:
			parts = append(parts, fmt.Sprintf(many, n))
		}
	}
	say(c.Overlapped, "1 overlapped hold", "%d overlapped holds")
	say(c.Verdict.Lost, "1 lost update", "%d lost updates")
	if l.tokens {
		say(c.Verdict.FencedOverlaps, "1 overlap after fencing", "%d overlaps after fencing")
		say(c.Verdict.FencedLost, "1 lost update after fencing", "%d lost updates after fencing")
		say(c.Verdict.Fell, "1 token that fell", "%d tokens that fell")
	}
	say(len(c.Stuck), "1 stuck name", "%d stuck names")
	say(c.Crashes, "1 worker that crashed", "%d workers that crashed")
	if len(parts) == 0 {
		return none
	}
	return strings.Join(parts, ", ")
}

// inRuns is a figure of all cells, with the number of runs that have it.
func (s sum) inRuns(figure func(cell) int) string {
	all, runs := 0, 0
	for _, c := range s.cells {
		n := figure(c)
		if all += n; n > 0 {
			runs++
		}
	}
	switch {
	case all == 0:
		return none
	case runs == 1:
		return fmt.Sprintf("%d in one run", all)
	}
	return fmt.Sprintf("%d in %d runs", all, runs)
}

// rate is the median of the grants a second without faults, with the least and the most; a dash: there was no such run.
func (s sum) rate() string {
	n := len(s.rates)
	switch n {
	case 0:
		return "-"
	case 1:
		return fmt.Sprintf("%.0f", s.rates[0])
	}
	return fmt.Sprintf("%.0f (%.0f to %.0f)", (s.rates[(n-1)/2]+s.rates[n/2])/2, s.rates[0], s.rates[n-1])
}

// part is the wait that a part of all does not exceed, or a dash.
func (c cell) part(p float64) string {
	if len(c.Waits) == 0 {
		return "-"
	}
	return c.Waits[min(int(p*float64(len(c.Waits))), len(c.Waits)-1)].Round(10 * time.Millisecond).String()
}

// The parts of a reason that differ from run to run: names of locks, and numbers.
var (
	lockName = regexp.MustCompile(`[a-z]+(-[a-z]+)*-\d+-\d+`)
	digits   = regexp.MustCompile(`\d+`)
)

// often is the most frequent reason of failures, without what differs from run to run, and how often that was.
func (c cell) often() (reason string, n int) {
	counts := make(map[string]int)
	for r, n := range c.Reasons {
		counts[digits.ReplaceAllString(lockName.ReplaceAllString(r, "NAME"), "N")] += n
	}
	for _, r := range slices.Sorted(maps.Keys(counts)) {
		if counts[r] > n {
			reason, n = r, counts[r]
		}
	}
	return reason, n
}
