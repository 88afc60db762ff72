package main

import (
	"cmp"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// philosophers stands for the runs of -philosophers among the faults of other runs.
const philosophers fault.Kind = "philosophers"

// seatPhilosophers sets what the flags do not: five workers with a client each, five names, and no faults.
func (o *options) seatPhilosophers(f *flag.FlagSet, names *int) {
	set := make(map[string]bool)
	f.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if !set["workers"] {
		o.config.Workers = 5
	}
	if !set["clients"] {
		o.config.Clients = 1
	}
	if !set["names"] {
		*names = 5
	}
	if !set["faults"] {
		o.faults = "^$"
	}
	o.config.Philosophers, o.config.For = true, o.philosophers
}

// philosophersHead is the head of the section about philosophers.
const philosophersHead = "## Two locks in opposite order\n"

// philosophersSection is the section of the document about philosophers; "": there are no results of them.
func philosophersSection(cells []cell) string {
	cells = slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Deadlocks == nil })
	if len(cells) == 0 {
		return ""
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	near := slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Distance > 0 })
	newest := func(x, y cell) int { return x.At.Compare(y.At) }
	if len(near) == 0 {
		near = cells
	}
	last := slices.MaxFunc(near, newest)
	b.WriteString(philosophersHead)
	line("")
	line("Five processes take two of five locks each, in random order, the second while they hold the first, again and again. So now and")
	line("then each of some waits for a lock that the next one holds. There are no faults, and the TTL is %v. A process whose client waits for its", last.TTL)
	line("second lock for more than 10s is killed, as an operator would do; its locks are free after the TTL. The tool judges by its own")
	line("journal of requests and answers: a circle begins when its last wait is requested. Another end of a circle: one of its processes has")
	line("lost its lock, one got a lock that was held, or the run was over. The target `comparison` wrote this section on %s.", last.At.Format(time.DateOnly))
	line("")
	line("| | minutes | circles of waits | one wait failed | several waits failed | none failed, a process was killed | another end | from closing to the failure, p50 | p99 | waits that failed without a circle | second locks granted |")
	line("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	var texts []string
	row := func(title string, d judge.Deadlocks, length time.Duration) {
		line("| %s | %.0f | %d | %d | %d | %d | %d | %s | %s | %d | %d |", title, length.Minutes(), d.Circles, d.Broken, d.Several, d.GivenUp, d.Lost+d.Granted+d.Open,
			d.Time(0.5), d.Time(0.99), d.False, d.Meals)
	}
	for _, l := range libraries {
		d, length, version, reasons := addDeadlocks(l, 0, cells)
		if length == 0 {
			continue
		}
		row(l.title, d, length)
		text := fmt.Sprintf("**%s** %s: %s.", l.title, version, happens(d))
		if often, n := reasons.often(); n > 0 {
			text += fmt.Sprintf(" The most frequent reason why an acquisition or a release failed (%d times): `%s`.", n, shortened(often))
		}
		texts = append(texts, text)
	}
	var far []cell
	for _, l := range libraries {
		for _, distance := range distancesOf(cells) {
			if d, length, _, _ := addDeadlocks(l, distance, cells); length > 0 {
				row(fmt.Sprintf("%s, %v away", l.title, distance), d, length)
				far = slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Distance == 0 })
			}
		}
	}
	line("")
	if len(far) > 0 {
		line("In the rows with a distance, a proxy lets the bytes between each process and the servers take so much longer, one way, and the TTL")
		line("is %v. A circle of zklock [ends](guarantees.md#what-is-found) within two `deadlock_timeout`s, of a second, and eight round trips; where", slices.MaxFunc(far, newest).TTL)
		line("processes and servers wait for a processor, as they did in these runs, some take longer.")
		line("")
	}
	line("%s", strings.Join(texts, "\n"))
	line("")
	line("A wait that fails is one that its program can repeat, after it has released its first lock. The worker of zklock passes the context")
	line("that carries the first lock; the other libraries have no such argument. Curator, kazoo and etcd can end a")
	line("wait after a time that the program chooses, which would end a circle, too; the workers choose none. That of redsync passes on the error after the 32 tries, about")
	line("5 s, that redsync makes by default; it does not look for circles. To repeat a row:")
	line("")
	line("```")
	line("go run ./contrib/locktest/cmd/locktest -library etcd -philosophers %v -ttl %v", cmp.Or(last.For, time.Minute), last.TTL)
	line("```")
	line("")
	return b.String()
}

// distancesOf returns the distances of runs, but for those without one.
func distancesOf(cells []cell) (all []time.Duration) {
	for _, c := range cells {
		if c.Distance > 0 && !slices.Contains(all, c.Distance) {
			all = append(all, c.Distance)
		}
	}
	slices.Sort(all)
	return all
}

// addDeadlocks adds up the runs of a library at a distance. The cell has the reasons of failures.
func addDeadlocks(l library, distance time.Duration, cells []cell) (sum judge.Deadlocks, length time.Duration, version string, reasons cell) {
	for _, c := range cells {
		if c.Library == l.name && c.Distance == distance {
			sum.Add(*c.Deadlocks)
			length += c.Duration
			version = c.Version
			reasons.add(c)
		}
	}
	return sum, length, version, reasons
}

// happens says in words what a library does with a circle.
func happens(d judge.Deadlocks) string {
	if d.Circles == 0 {
		return "there was no circle"
	}
	var parts []string
	say := func(n int, one, some, all string) {
		switch {
		case n == 0:
		case n == d.Circles:
			parts = append(parts, all)
		case n == 1:
			parts = append(parts, one)
		default:
			parts = append(parts, fmt.Sprintf(some, n))
		}
	}
	say(d.Broken, "in one circle one wait failed, and the others went on", "in %d circles one wait failed, and the others went on", "one wait of each circle failed, and the others went on")
	say(d.Several, "in one circle several waits failed", "in %d circles several waits failed", "several waits of each circle failed")
	say(d.GivenUp, "one circle lasted until a process was killed", "%d circles lasted until a process was killed", "each circle lasted until a process was killed")
	switch {
	case d.False == 1:
		parts = append(parts, "one wait failed that was in no circle")
	case d.False > 1:
		parts = append(parts, fmt.Sprintf("%d waits failed that were in no circle", d.False))
	}
	return strings.Join(parts, "; ")
}
