package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// philosopher is what one process holds and waits for, according to the journal.
type philosopher struct {
	first  string // the fork that it holds while it takes another one; "" if it holds none
	wanted string // the second one, while it waits for it
	label  string // of that wait
}

// roundTable is what the journal shows.
type roundTable struct {
	circles []*ringOfWaits
	wrong   []string        // what must not be
	lost    map[string]bool // the labels of waits during which the process lost its first fork

	meals    int
	ended    int // circles that one victim has ended
	phantoms int // errors that name no circle that there was
	twice    int // errors of a circle that had a victim already
	exempt   int // circles and errors that were not judged: a process has lost a fork meanwhile
}

// ringOfWaits is a circle of waits.
type ringOfWaits struct {
	labels []string // each waits for what the next holds, and the last for the first
	closed int64    // when its last wait was called
	ended  int64    // when the first of its waits has ended; 0: it has not
	victim string   // its label; "" if the wait that ended first has another error, or none
	why    string   // then: how it has ended
}

// is reports whether labels are those of the circle, in its order, from any of them on.
func (c *ringOfWaits) is(labels []string) bool {
	if len(labels) != len(c.labels) {
		return false
	}
	i := max(0, slices.Index(c.labels, labels[0]))
	return slices.Equal(slices.Concat(c.labels[i:], c.labels[:i]), labels)
}

// judgePhilosophers goes through the journal. A fork is held from when its acquisition has returned until its
// release is called, and a wait lasts from its call to its return. So a circle in the journal was real, however
// late a process wrote a line.
func judgePhilosophers(journal []report) *roundTable {
	table, at := &roundTable{lost: lostWaits(journal)}, map[string]*philosopher{}
	for _, r := range journal {
		f := r.Fork
		if f == nil {
			continue
		}
		name, _, _ := strings.Cut(f.Label, "-")
		p := at[name]
		if p == nil {
			p = &philosopher{}
			at[name] = p
		}
		switch r.What {
		case "takes":
			if f.Second {
				p.wanted, p.label = f.Fork, f.Label
				if labels := circleOf(at, p); labels != nil {
					table.circles = append(table.circles, &ringOfWaits{labels: labels, closed: r.At})
				}
			}
		case "has":
			if c := table.open(f.Label); c != nil {
				c.ended, c.why = r.At, f.Label+" has got its fork"
			}
			p.wanted = ""
			for _, q := range at {
				if q.first == f.Fork {
					q.first = "" // it has lost the fork, and has not reported that yet
				}
			}
			if f.Second {
				table.meals++
			} else {
				p.first = f.Fork
			}
		case "failed":
			p.wanted = ""
			table.fails(&r)
		case "gives":
			if !f.Second {
				p.first = ""
			}
		}
	}
	for _, c := range table.circles {
		table.settle(c)
	}
	return table
}

// lostWaits are the labels of the second waits that have failed, and whose first fork was lost then.
func lostWaits(journal []report) map[string]bool {
	failed, lost := map[string]bool{}, map[string]bool{}
	for _, r := range journal {
		switch f := r.Fork; {
		case f == nil:
		case r.What == "failed" && f.Second:
			failed[f.Label] = true
		case r.What == "gives" && !f.Second && r.Err != "" && failed[secondOf(f.Label)]:
			lost[secondOf(f.Label)] = true
		}
	}
	return lost
}

// circleOf returns the labels of the circle in which a philosopher waits; nil if there is none.
func circleOf(at map[string]*philosopher, p *philosopher) (labels []string) {
	holder := map[string]*philosopher{}
	for _, q := range at {
		if q.first != "" {
			holder[q.first] = q
		}
	}
	for q := p; q != nil && q.wanted != "" && len(labels) < len(at); {
		labels = append(labels, q.label)
		if q = holder[q.wanted]; q == p {
			return labels
		}
	}
	return nil
}

// open returns the circle that a wait is in; nil if it is in none. As each philosopher waits for one fork, a wait
// is in one circle at most.
func (table *roundTable) open(label string) *ringOfWaits {
	for _, c := range table.circles {
		if c.ended == 0 && slices.Contains(c.labels, label) {
			return c
		}
	}
	return nil
}

// fails judges the error of a take.
func (table *roundTable) fails(r *report) {
	label, named := r.Fork.Label, r.Fork.Circle
	c := table.open(label)
	if c != nil {
		c.ended = r.At
		if c.is(named) && named[0] == label {
			c.victim = label
			return
		}
		c.why = r.Err
	}
	isLost := func(label string) bool { return table.lost[label] }
	switch {
	case isLost(label) && c != nil: // settle counts the circle
	case isLost(label), slices.ContainsFunc(named, isLost):
		table.exempt++
	case len(named) == 0:
		table.reject("%s has failed in another way: %s", label, r.Err)
	case slices.ContainsFunc(table.circles, func(c *ringOfWaits) bool { return c.is(named) && c.victim != "" }):
		table.twice++
		table.reject("%s is a second victim: %s", label, r.Err)
	default:
		table.phantoms++
		table.reject("there was no such circle when %s failed: %s", label, r.Err)
	}
}

// settle judges the end of a circle.
func (table *roundTable) settle(c *ringOfWaits) {
	switch {
	case c.victim != "":
		table.ended++
	case slices.ContainsFunc(c.labels, func(label string) bool { return table.lost[label] }):
		table.exempt++
	case c.ended == 0:
		table.reject("the circle of %v has not ended", c.labels)
	default:
		table.reject("the circle of %v has ended after %v without a victim: %s", c.labels, time.Duration(c.ended-c.closed), c.why)
	}
}

func (table *roundTable) reject(format string, args ...any) {
	table.wrong = append(table.wrong, fmt.Sprintf(format, args...))
}

// summary has the figures. cuts are when followers were cut off.
func (table *roundTable) summary(cuts []turn) string {
	var quiet, cut []time.Duration
	for _, c := range table.circles {
		switch took := time.Duration(c.ended - c.closed); {
		case c.victim == "":
		case slices.ContainsFunc(cuts, func(k turn) bool { return k.Began < c.ended && c.closed < k.Ended }):
			cut = append(cut, took)
		default:
			quiet = append(quiet, took)
		}
	}
	return fmt.Sprintf("%d meals, %d circles, %d of them ended by one victim each, %d not judged after a loss, %d false, %d with two victims, %d cuts; from when a circle closed to the victim's error: %s; with a follower cut off: %s; all: %s",
		table.meals, len(table.circles), table.ended, table.exempt, table.phantoms, table.twice, len(cuts), percentiles(quiet), percentiles(cut), percentiles(slices.Concat(quiet, cut)))
}

func percentiles(d []time.Duration) string {
	if len(d) == 0 {
		return "none"
	}
	slices.Sort(d)
	at := func(p int) time.Duration { return d[min(len(d)*p/100, len(d)-1)].Round(time.Millisecond) }
	return fmt.Sprintf("p50 %v, p99 %v, longest %v of %d", at(50), at(99), at(100), len(d))
}
