package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

// writeDocument writes the document from results, and its picture next to it.
func writeDocument(path string, cells []cell) error {
	old, _ := os.ReadFile(path) // its sections stay for which there are no results
	section := func(head, now string) string {
		_, before, _ := cutSection(string(old), head)
		return cmp.Or(now, before)
	}
	sections := section(silentHead, silentSection(cells)) + section(philosophersHead, philosophersSection(cells)) + section(usualHead, usualSection(cells))
	every := cells
	cells = slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Fault == philosophers || c.Silence != nil || usual(c.TTL) })
	all := sums(cells)
	if len(all) == 0 {
		return errors.New("there are no results: run some first")
	}
	picture := strings.TrimSuffix(path, filepath.Ext(path)) + ".svg"
	if err := os.WriteFile(picture, []byte(waitsPicture(all)), 0o666); err != nil {
		return err
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	first := slices.MinFunc(cells, func(x, y cell) int { return x.At.Compare(y.At) })
	last := slices.MaxFunc(cells, func(x, y cell) int { return x.At.Compare(y.At) })
	var seconds float64
	runs := make(map[string]int)
	unjudged := 0
	var tools []string
	for _, c := range cells {
		if !slices.Contains(tools, c.Tool) {
			tools = append(tools, c.Tool)
		}
		seconds += c.Duration.Seconds()
		runs[c.Library+string(c.Fault)]++
		if !c.Judged {
			unjudged++
		}
	}
	length := slices.MinFunc(cells, func(x, y cell) int { return cmp.Compare(x.For, y.For) }).For // that of kills is three times that
	least, most := slices.Min(slices.Collect(maps.Values(runs))), slices.Max(slices.Collect(maps.Values(runs)))
	line("# Lock libraries under the same faults")
	line("")
	b.WriteString(summary(all, every, filepath.Base(picture)))
	line("## What was done")
	line("")
	line("[contrib/locktest](../contrib/locktest/README.md) ran the workers of %d libraries, and broke them and their servers. The target `comparison` of the", len(all))
	line("Makefile wrote this page from the results; do not edit it. The runs are %s, take %.0f minutes in all, and are by the tool at %s.", days(first.At, last.At), seconds/60, strings.Join(tools, " and "))
	line("Each library has %s with each fault, of %v, and three times that for the kills of clients. All libraries have the same", between(least, most), length)
	line("schedules. The TTL is %v, so that faults outlast it often; the libraries' own defaults, where they have one, are from 8 s to a minute.", first.TTL)
	line("So few and short runs show mistakes; a 0 proves nothing.")
	line("")
	line("## What was seen")
	line("")
	line("A lock should have a 0 in each column of mistakes, but for that of updates that were lost because the client was stopped in its write: only a")
	line("token can help there. What the libraries promise about that, and how each was used, is [below](#the-libraries).")
	line("")
	line("| | overlapped holds | overlaps after fencing | lost updates | the same, stopped in a write | lost after fencing | tokens that fell | stuck names | kills while another client waited | next grant after the kill, p50 | p99 | grants a second without faults |")
	line("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, s := range all {
		overlaps, lost, fell := "no tokens", "no tokens", "no tokens"
		if s.tokens {
			overlaps = s.inRuns(func(c cell) int { return c.Verdict.FencedOverlaps })
			lost = s.inRuns(func(c cell) int { return c.Verdict.FencedLost })
			fell = s.inRuns(func(c cell) int { return c.Verdict.Fell })
		}
		inWrite := func(is bool) string {
			return s.inRuns(func(c cell) int {
				if (c.Fault == fault.StopWrite) != is {
					return 0
				}
				return c.Verdict.Lost
			})
		}
		line("| %s | %s | %s | %s | %s | %s | %s | %s | %d | %s | %s | %s |", s.title, s.overlapped(), overlaps,
			inWrite(false), inWrite(true), lost, fell, s.inRuns(func(c cell) int { return len(c.Stuck) }), len(s.total.Waits), s.total.part(0.5), s.total.part(0.99), s.rate())
	}
	line("")
	line("- An overlapped hold: other clients were granted the lock, and the holder, asked after that, still said that it held it.")
	line("- A lost update: a client wrote what it had computed, though another one had written since its read.")
	line("- A fenced register refuses a token older than the newest that it has seen. Without tokens it refuses nothing, so it says nothing about a library.")
	line("- A stop in a write comes between the newest check and the write. No lock can help there: only a token can. A lock that is free sooner after the stop has more of these.")
	line("- A stuck name is one that a new process did not get within 20 s and ten times the TTL after the faults.")
	line("- With fewer than 100 kills, p99 is the longest wait. ZooKeeper ends a session at a tick after its timeout. The tick was 500 ms.")
	line("- Grants a second, as the median and the range of the runs, include the tool's pauses, and the libraries have different servers: `integration_test/bench` measures speed.")
	line("")
	line("The same by fault. The figure in parentheses is how often the fault happened. A dash: the fault cannot be made there.")
	line("")
	line("%s", byFault(all))
	line("A client that was stopped goes on, and may say for a moment that it holds its lock, until the library has noticed the end of its session.")
	line("A library that compares the time with its lease before it says that it holds has no such moment. Runs of other libraries, and other")
	line("programs, used the machine at the same time, so times and rates are rough.")
	line("")
	line("## The libraries")
	for _, s := range all {
		line("")
		line("**%s** %s, with %s %s. %s", s.title, strings.Join(s.versions, " and "), s.backend, s.total.Servers, s.promise)
		line("Used: %s", s.use)
		line("Seen: %s", seen(s))
	}
	line("")
	line("The heads of the [workers](../contrib/locktest/workers) name the places in the documentation.")
	line("")
	b.WriteString(sections)
	line("## Faults of other servers")
	line("")
	line("Servers of Redis are independent: none leads, and none can be cut off from the others. A follower of ZooKeeper is cut off from its leader in both")
	line("directions. A member of etcd is cut off on connections that others make to it, so that its answers do not reach them. Clocks")
	line("jump by an hour, forward and later back; programs in Go do not take their time from the C library, so their clocks stay. Fsync takes a sixteenth of")
	line("the TTL longer, by strace, on all servers. A server of ZooKeeper that rejoins gets the whole state (`forceSnapshotSync`): before 3.8.4, and in")
	line("3.9.0, 3.9.1 and 3.9.3, it may lose transactions otherwise, and no lock is safe on such servers ([operations](operations.md#zookeeper-versions)).")
	line("")
	line("## How to repeat it")
	line("")
	line("```")
	line("make comparison RUNS_EACH=%d", most)
	line("go run ./contrib/locktest/cmd/locktest -library kazoo -faults 'client cut off' -seed 1 -for %v -ttl %v", length, first.TTL)
	line("```")
	line("")
	line("The second line repeats the schedule of one cell, with the distribution's releases unless ZOOKEEPER_HOME, LOCKTEST_CURATOR and LOCKTEST_KAZOO name")
	line("others, and with the etcd in PATH (`.ci/etcd` builds that of the table). The first needs Java, Maven, pip, Redis, a C compiler and strace, builds etcd, and takes about %.0f minutes for each run of all", seconds/60/(float64(len(cells))/float64(len(runs))))
	line("cells, a minute more for each library's philosophers, and the starts of servers.")
	line("Results are in [comparison.ndjson](comparison.ndjson), a line for each run. What is there is not run again, so the target can be stopped and started.")
	line("")
	line("## What was not tested")
	line("")
	line("Machines other than one with all processes, real networks and disks, clocks of programs in Go, clocks that run too fast or too slow, other")
	line("servers' settings, locks other than mutexes, TLS, and runs of hours. The workers were not reviewed by the authors of the libraries.")
	if unjudged > 0 {
		line("Porcupine had no answer in time in %d of the runs, which only the plain check judged.", unjudged)
	}
	return os.WriteFile(path, []byte(b.String()), 0o666)
}

// days says on which days runs were made.
func days(first, last time.Time) string {
	from, to := first.Format(time.DateOnly), last.Format(time.DateOnly)
	if from == to {
		return "of " + from
	}
	return "from " + from + " to " + to
}

// overlapped says how many holds were overlapped, in how many runs, and by how many grants: a holder that believes in its lock for a
// moment too long after a pause may be overlapped by many.
func (s sum) overlapped() string {
	text := s.inRuns(func(c cell) int { return c.Overlapped })
	switch n := s.total.Verdict.Overlaps; {
	case text == none:
		return none
	case n == 1:
		return text + ", by one grant"
	default:
		return fmt.Sprintf("%s, by %d grants", text, n)
	}
}

// between says how many runs there are.
func between(least, most int) string {
	switch {
	case least != most:
		return fmt.Sprintf("%d to %d runs", least, most)
	case most == 1:
		return "one run"
	}
	return fmt.Sprintf("%d runs", most)
}

// byFault is the table with a row for each fault and a column for each library.
func byFault(all []sum) string {
	var b strings.Builder
	b.WriteString("| fault |")
	for _, s := range all {
		fmt.Fprintf(&b, " %s |", s.title)
	}
	fmt.Fprintf(&b, "\n|---|%s\n", strings.Repeat("---|", len(all)))
	for _, k := range append([]fault.Kind{quiet}, compared(fault.Kinds)...) {
		if !slices.ContainsFunc(all, func(s sum) bool { return slices.ContainsFunc(s.cells, func(c cell) bool { return c.Fault == k }) }) {
			continue
		}
		fmt.Fprintf(&b, "| %s |", k)
		for _, s := range all {
			var total cell
			n := 0
			for _, c := range s.cells {
				if c.Fault == k {
					total.add(c)
					n++
				}
			}
			switch {
			case n == 0:
				b.WriteString(" - |")
			case k == quiet:
				fmt.Fprintf(&b, " %s |", s.mistakes(total))
			default:
				fmt.Fprintf(&b, " %s (%d) |", s.mistakes(total), total.Faults)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// seen says in words what the results of a library have.
func seen(s sum) string {
	var wrong []string
	for _, k := range append([]fault.Kind{quiet}, compared(fault.Kinds)...) {
		var total cell
		for _, c := range s.cells {
			if c.Fault == k {
				total.add(c)
			}
		}
		if m := s.mistakes(total); m != none {
			wrong = append(wrong, fmt.Sprintf("%s with \"%s\"", m, k))
		}
	}
	text := "none of the mistakes"
	if len(wrong) > 0 {
		text = strings.Join(wrong, "; ")
	}
	text = fmt.Sprintf("%s, in %d grants and %d faults. Losses that the worker reported: %d. Acquisitions that failed: %d.",
		text, s.total.Grants, s.total.Faults, s.total.Losses, s.total.Failed)
	if n := len(s.total.Stuck); n > 0 {
		text += fmt.Sprintf(" For %d of its %d stuck names, an acquisition had failed before, in a process that lived on.", s.failedBefore(), n)
	}
	if often, n := s.total.often(); n > 0 {
		text += fmt.Sprintf(" The most frequent reason why an acquisition or a release failed (%d times): `%s`.", n, shortened(often))
	}
	return text
}

// shortened is a text as part of a line of Markdown.
func shortened(text string) string {
	text = strings.NewReplacer("`", "'", "\n", " ").Replace(text)
	if r := []rune(text); len(r) > 120 {
		text = string(r[:120]) + "..."
	}
	return text
}
