package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

// overview is what top shows at a moment: by default the names with the most waiters, and among these the
// ones that have been held for the longest time. Leaders and candidates do so on purpose, and come last.
type overview struct {
	limit      int // of rows
	by         order
	holds      *operator.Holds
	names      int
	waiting    map[string]bool // the processes that wait, without candidates
	candidates int
	rows       []overviewRow
	at         time.Time
	problems   int
	problem    error // the first
}

// overviewRow is a name.
type overviewRow struct {
	name    string
	mode    string
	holder  string
	leads   bool            // the first holder is a leader
	since   operator.Millis // of the first holder; 0: not known
	lasts   string          // how long the first holder has held, or how long ago it has asked
	waiters int
	waits   string          // how many wait, and how many are candidates
	waiting operator.Millis // of the first waiter; 0: none, or not known
	label   string
}

// look reads the names in use. It keeps as many rows as are shown, and a few more.
func look(ctx context.Context, c *zklock.Client, prefix string, limit int, by order, holds *operator.Holds) overview {
	o := overview{limit: limit, by: by, holds: holds}
	began := holds.Begin()
	for info, err := range c.Locks(ctx, prefix) {
		if err != nil {
			if !isRootMissing(err) {
				if o.problems++; o.problem == nil {
					o.problem = err
				}
			}
			continue
		}
		o.at = time.Now() // what was read may have taken long
		o.add(info)
	}
	if o.problem == nil {
		holds.End(began)
	}
	o.trim()
	o.at = time.Now()
	return o
}

func (o *overview) add(info zklock.LockInfo) {
	s := summarize(info)
	r := overviewRow{name: info.Name, mode: "-", holder: s.owner(), label: "-", lasts: "-", waiters: s.waiters, waits: s.waiting()}
	shown := operator.Show(info.Name, info.Path, info.Contenders, o.holds)
	if o.waiting == nil {
		o.waiting = make(map[string]bool)
	}
	for _, c := range shown.Contenders {
		if !c.Held && !c.Candidacy {
			o.waiting[c.Identity()] = true
		}
	}
	if held := shown.Holders(); len(held) > 0 {
		c := held[0]
		r.mode, r.label, r.leads, r.since, r.lasts = c.Mode, dash(c.Label), c.Candidacy, cmp.Or(c.HeldSince, c.Since), c.Lasts(o.at)
	}
	if s.waiter != nil {
		r.waiting = operator.MillisOf(s.waiter.Since)
	}
	o.names++
	o.candidates += s.candidates
	if o.rows = append(o.rows, r); len(o.rows) >= 4*max(o.limit, 1) {
		o.trim()
	}
}

// trim sorts the rows and removes those that are not shown.
func (o *overview) trim() {
	slices.SortStableFunc(o.rows, func(a, b overviewRow) int {
		by := 0
		switch o.by {
		case "name":
			return cmp.Compare(a.name, b.name)
		case "wait":
			by = longest(a.waiting, b.waiting)
		case "age":
			by = cmp.Or(last(a.leads, b.leads), longest(a.since, b.since))
		}
		return cmp.Or(by, cmp.Compare(b.waiters, a.waiters), last(a.leads, b.leads), cmp.Compare(a.since, b.since), cmp.Compare(a.name, b.name))
	})
	o.rows = o.rows[:min(len(o.rows), max(o.limit, 0))]
}

// longest compares two times of which the first comes first, and one that is not known last.
func longest(a, b operator.Millis) int { return cmp.Or(last(a == 0, b == 0), cmp.Compare(a, b)) }

// last compares two rows of which one may be put last.
func last(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// second is the clock of a screen.
const second = "15:04:05 MST"

// lines returns the lines of the screen, each cut at a width.
func (o *overview) lines(width int) []string {
	head := fmt.Sprintf("%s  %s in use, %s", o.at.Format(second), operator.Count(o.names, "name"), operator.Count(len(o.waiting), "waiting process"))
	if o.candidates > 0 {
		head += ", " + operator.Count(o.candidates, "candidate")
	}
	if o.problem != nil {
		head = fmt.Sprintf("%s  %s", o.at.Format(second), operator.Printable(o.problem.Error()))
	}
	return o.screen(head, width)
}

// connecting returns the lines of the screen while the next look takes long.
func (o *overview) connecting(now time.Time, width int) []string {
	head := now.Format(second) + "  connecting to the ensemble"
	if !o.at.IsZero() {
		head += ", since " + o.at.Format(second) + " without an answer"
	}
	return o.screen(head, width)
}

// screen returns the lines of the screen with a head.
func (o *overview) screen(head string, width int) []string {
	var b strings.Builder
	t := newTable(&b, "NAME", "MODE", "HOLDER", "SINCE", "WAITERS", "LONGEST WAIT", "LABEL")
	for _, r := range o.rows {
		_ = t.row(operator.Escape(r.name), r.mode, r.holder, r.lasts, r.waits, cmp.Or(r.waiting.Age(o.at, true), "-"), r.label) // a Builder does not fail
	}
	_ = t.end()
	lines := append([]string{head, ""}, strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")...)
	for i := range lines {
		lines[i] = cut(lines[i], width)
	}
	return append(lines, "", cut("q ends", width))
}

// cut returns the first n characters of a text.
func cut(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:max(n, 0)])
}
