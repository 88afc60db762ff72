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

// sum adds up the cells of one library.
type sum struct {
	library
	cells []cell
	total cell
	fast  float64 // grants a second without faults
}

// sums adds up the cells by library, in the order of the document.
func sums(cells []cell) []sum {
	var all []sum
	for _, l := range libraries {
		s := sum{library: l}
		var seconds float64
		var grants int
		for _, c := range cells {
			if c.Library != l.name {
				continue
			}
			s.cells = append(s.cells, c)
			s.total.add(c)
			s.total.Version, s.total.Servers = c.Version, c.Servers
			if c.Fault == quiet {
				seconds += c.Duration.Seconds()
				grants += c.Grants
			}
		}
		if seconds > 0 {
			s.fast = float64(grants) / seconds
		}
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
	c.Verdict.Overlaps += o.Verdict.Overlaps
	c.Verdict.FencedOverlaps += o.Verdict.FencedOverlaps
	c.Verdict.Fell += o.Verdict.Fell
	c.Verdict.Lost += o.Verdict.Lost
	c.Verdict.FencedLost += o.Verdict.FencedLost
	c.Stuck = append(c.Stuck, o.Stuck...)
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

// mistakes says what a cell of a library has that a lock should not. Only tokens give a meaning to what it has
// after fencing.
func (l library) mistakes(c cell) string {
	var parts []string
	say := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	say(c.Verdict.Overlaps, "o")
	say(c.Verdict.Lost, "l")
	if l.tokens {
		say(c.Verdict.FencedOverlaps, "of")
		say(c.Verdict.FencedLost, "lf")
		say(c.Verdict.Fell, "t")
	}
	say(len(c.Stuck), "s")
	if len(parts) == 0 {
		return "0"
	}
	return strings.Join(parts, ", ")
}

// part is the wait that a part of all does not exceed, or a dash.
func (c cell) part(p float64) string {
	if len(c.Waits) == 0 {
		return "-"
	}
	return c.Waits[min(int(p*float64(len(c.Waits))), len(c.Waits)-1)].Round(10 * time.Millisecond).String()
}

// writeDocument writes the document from results, and its picture next to it.
func writeDocument(path string, cells []cell) error {
	section := philosophersSection(cells)
	if old, err := os.ReadFile(path); section == "" && err == nil {
		_, section, _ = cutPhilosophers(string(old))
	}
	cells = slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Fault == philosophers })
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
	for _, c := range cells {
		seconds += c.Duration.Seconds()
		runs[c.Library+string(c.Fault)]++
		if !c.Judged {
			unjudged++
		}
	}
	least, most := slices.Min(slices.Collect(maps.Values(runs))), slices.Max(slices.Collect(maps.Values(runs)))
	line("# Lock libraries under the same faults")
	line("")
	line("[contrib/locktest](../contrib/locktest/README.md) ran the workers of %d libraries, and broke them and their servers. The target `comparison` of the", len(all))
	line("Makefile wrote this page from the results; do not edit it. The runs are from %s to %s, and have %.0f minutes together.", first.At.Format(time.DateOnly), last.At.Format(time.DateOnly), seconds/60)
	line("Each library has %s with each fault, of %v and a TTL of %v. All libraries have the same schedules. So few and short runs show", between(least, most), first.For, first.TTL)
	line("mistakes; a 0 proves nothing.")
	line("")
	line("## What was seen")
	line("")
	line("| | overlaps of work | overlaps after fencing | lost updates | lost after fencing | tokens that fell | stuck names | next grant after a kill, p50 | p99 | grants a second without faults |")
	line("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, s := range all {
		v := s.total.Verdict
		overlaps, lost, fell := fmt.Sprint(v.FencedOverlaps), fmt.Sprint(v.FencedLost), fmt.Sprint(v.Fell)
		if !s.tokens {
			overlaps, lost, fell = "no tokens", "no tokens", "no tokens"
		}
		line("| %s | %d | %s | %d | %s | %s | %d | %s | %s | %.0f |", s.title, v.Overlaps, overlaps, v.Lost,
			lost, fell, len(s.total.Stuck), s.total.part(0.5), s.total.part(0.99), s.fast)
	}
	line("")
	line("A fenced register refuses a token older than the newest that it has seen. Without tokens it refuses nothing, so it says nothing about a library.")
	line("")
	line("The same by fault. `o` are overlaps, `l` lost updates, `of` overlaps after fencing, `lf` lost updates after fencing, `t` tokens that fell,")
	line("and `s` stuck names; 0: none of these. The second figure is how often the fault happened. A dash: the fault cannot be made there.")
	line("")
	line("%s", byFault(all))
	line("A client that was stopped goes on, and may say for a moment that it holds its lock, until the library has noticed the end of its session.")
	line("That is an overlap. A library has none that compares the time with its lease before it says that it holds.")
	line("")
	line("A stop in a write comes between the newest check and the write, where no lock can help: only a token can. So lost updates in that row")
	line("count against a library without tokens only as far as its documentation promises more. Grants a second include the tool's pauses, and the")
	line("libraries have different servers: `integration_test/bench` measures speed. Other programs, also runs of other libraries, may have used the")
	line("machine at the same time, so times and rates are rough.")
	line("")
	line("![the time from the kill of a holder until the next grant](%s)", filepath.Base(picture))
	line("")
	line("## The libraries")
	for _, s := range all {
		line("")
		line("**%s** %s, with %s %s. %s", s.title, s.total.Version, s.backend, s.total.Servers, s.promise)
		line("Used: %s", s.use)
		line("Seen: %s", seen(s))
	}
	line("")
	line("The heads of the [workers](../contrib/locktest/workers) name the places in the documentation.")
	line("")
	b.WriteString(section)
	line("## Faults of other servers")
	line("")
	line("Servers of Redis are independent: none leads, and none can be cut off from the others. A follower of ZooKeeper is cut off from its leader in both")
	line("directions. A member of etcd is cut off on connections that others make to it, so that its answers do not reach them. Clocks")
	line("jump by an hour, forward and later back; programs in Go do not take their time from the C library, so their clocks stay. Fsync takes a sixteenth of")
	line("the TTL longer, by strace, on all servers.")
	line("")
	line("## How to repeat it")
	line("")
	line("```")
	line("make comparison RUNS_EACH=%d", most)
	line("go run ./contrib/locktest/cmd/locktest -library kazoo -faults 'client cut off' -seed 1 -for %v -ttl %v", first.For, first.TTL)
	line("```")
	line("")
	line("The second line repeats one cell. The first needs Java, ZooKeeper, Curator, kazoo, etcd, Redis, a C compiler and strace, and takes about %.0f minutes for each run of all cells.", minutesEach(cells, least))
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

// minutesEach is how long one run of all cells takes, without the pauses in between.
func minutesEach(cells []cell, runs int) float64 {
	var sum time.Duration
	for _, c := range cells {
		sum += c.Duration
	}
	return sum.Minutes() / float64(max(1, runs))
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
		if m := s.mistakes(total); m != "0" {
			wrong = append(wrong, fmt.Sprintf("%s with \"%s\"", m, k))
		}
	}
	text := "none of the mistakes"
	if len(wrong) > 0 {
		text = strings.Join(wrong, "; ")
	}
	text = fmt.Sprintf("%s, in %d grants and %d faults. Losses that the worker reported: %d. Acquisitions that failed: %d.",
		text, s.total.Grants, s.total.Faults, s.total.Losses, s.total.Failed)
	if often := s.total.often(); often != "" {
		text += fmt.Sprintf(" The most frequent reason, of %d failures: `%s`.", s.total.Reasons[often], shortened(often))
	}
	return text
}

// often is the most frequent reason of failures; "": there was none.
func (c cell) often() string {
	reasons := slices.Sorted(maps.Keys(c.Reasons))
	if len(reasons) == 0 {
		return ""
	}
	return slices.MaxFunc(reasons, func(a, b string) int { return cmp.Compare(c.Reasons[a], c.Reasons[b]) })
}

// shortened is a text as part of a line of Markdown.
func shortened(text string) string {
	text = strings.NewReplacer("`", "'", "\n", " ").Replace(text)
	if r := []rune(text); len(r) > 120 {
		text = string(r[:120]) + "..."
	}
	return text
}
