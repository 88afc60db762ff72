package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

// usual reports whether a TTL is one that users have: then the servers have ZooKeeper's usual tick.
func usual(ttl time.Duration) bool { return ttl >= silentTTL }

// usualHead is the head of the section about the settings that users have.
const usualHead = "## With the settings that users have\n"

// usualSection is the section of the document about runs with a usual TTL; "": there are no results of them.
func usualSection(cells []cell) string {
	cells = slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return !usual(c.TTL) || c.Silence != nil || c.Fault == philosophers })
	all := sums(cells)
	if len(all) == 0 {
		return ""
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	first := slices.MinFunc(cells, func(x, y cell) int { return x.At.Compare(y.At) })
	last := slices.MaxFunc(cells, func(x, y cell) int { return x.At.Compare(y.At) })
	length := slices.MinFunc(cells, func(x, y cell) int { return cmp.Compare(x.For, y.For) }).For
	var took time.Duration
	var kinds []string
	for _, c := range cells {
		took += c.Duration
		if k := string(c.Fault); c.Fault != quiet && !slices.Contains(kinds, k) {
			kinds = append(kinds, k)
		}
	}
	slices.Sort(kinds)
	b.WriteString(usualHead)
	line("")
	line("All of the above has short sessions and ticks, so that faults outlast them often. Here the TTL is %v, and servers of ZooKeeper have", first.TTL)
	line("`tickTime=%d`, `initLimit=10` and `syncLimit=5`; the rest is as above. There are fewer runs, of %v and three times that for the kills of", silentTick.Milliseconds(), length)
	line("clients. They are %s, took %.1f hours in all, and ran on a busy machine.", days(first.At, last.At), took.Hours())
	line("")
	line("| | runs | faults | overlapped holds | lost updates | the same, stopped in a write | stuck names | next grant after a kill, p50 | longest |")
	line("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, s := range all {
		inWrite := func(is bool) string {
			return s.inRuns(func(c cell) int {
				if (c.Fault == fault.StopWrite) != is {
					return 0
				}
				return c.Verdict.Lost
			})
		}
		line("| %s %s | %d | %d | %s | %s | %s | %s | %s | %s |", s.title, strings.Join(s.versions, " and "), len(s.cells), s.total.Faults, s.overlapped(),
			inWrite(false), inWrite(true), s.inRuns(func(c cell) int { return len(c.Stuck) }), s.total.part(0.5), s.total.part(1))
	}
	line("")
	line("%s", byFault(all))
	line("To repeat a row:")
	line("")
	line("```")
	line("go run ./contrib/locktest/cmd/locktest -library %s -for %v -ttl %v -faults '^(%s)$'", cmp.Or(last.Library, "zk"), length, first.TTL, strings.Join(kinds, "|"))
	line("```")
	line("")
	return b.String()
}
