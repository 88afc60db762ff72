package contention

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"
)

// waitsText returns the profile of waits as text, the longest delay first.
func waitsText(totals map[sample]total, took time.Duration) string {
	var all total
	for _, t := range totals {
		all = total{all.count + t.count, all.delay + t.delay}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s in %v: %v\n", counted(all.count, "wait"), round(took), round(all.delay))
	for _, s := range slices.SortedFunc(maps.Keys(totals), func(x, y sample) int {
		return cmp.Or(cmp.Compare(totals[y].delay, totals[x].delay), strings.Compare(x.class+x.holder, y.class+y.holder))
	}) {
		t := totals[s]
		fmt.Fprintf(&b, "\n%v in %s: %s\n", round(t.delay), counted(t.count, "wait"), strings.Join(reversed(s.texts()), ", "))
		writeCalls(&b, s.calls.calls())
	}
	return b.String()
}

// heldText returns the profile of held locks as text, the oldest first.
func heldText(ages map[place]age) string {
	var all age
	for _, a := range ages {
		all = age{all.count + a.count, 0, max(all.max, a.max)}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s held, the oldest for %v\n", counted(all.count, "lock"), round(all.max))
	for _, p := range slices.SortedFunc(maps.Keys(ages), func(x, y place) int {
		return cmp.Or(cmp.Compare(ages[y].max, ages[x].max), strings.Compare(x.class, y.class))
	}) {
		a := ages[p]
		fmt.Fprintf(&b, "\n%s held, the oldest for %v: lock %s\n", counted(a.count, "lock"), round(a.max), p.class)
		writeCalls(&b, p.calls.calls())
	}
	return b.String()
}

func writeCalls(b *strings.Builder, calls []runtime.Frame) {
	for _, c := range calls {
		fmt.Fprintf(b, "\t%s\n\t\t%s:%d\n", c.Function, c.File, c.Line)
	}
}

func counted(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

func reversed(texts []string) []string {
	slices.Reverse(texts)
	return texts
}

// round leaves out the digits of a time that a reader does not need.
func round(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}
