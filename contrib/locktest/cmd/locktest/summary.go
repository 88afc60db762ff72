package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// summary is the half page with which the document begins. It is for readers that choose a library, and do not read on.
func summary(all []sum, cells []cell, picture string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	minutes, faults, inWrites, afterToken := 0.0, 0, 0, 0
	var tokens []string
	for _, s := range all {
		minutes += s.total.Duration.Minutes() / float64(len(all))
		faults += s.total.Faults / len(all)
		inWrites += s.lostInWrites()
		if s.tokens {
			tokens = append(tokens, s.title)
			afterToken += s.total.Verdict.FencedLost
		}
	}
	line("%d lock libraries did the same work, for about %.0f minutes each: several processes took turns at a lock, and only its holder was to", len(all), minutes)
	line("change a value. Meanwhile a program killed, stopped and cut off processes and servers, about %d times for each library, and at the", faults)
	line("same moments for all of them. It counted what a lock is there to prevent.")
	line("")
	line("| | two holders at once | changes lost | locks that stayed stuck | deadlocks that ended by themselves | locks lost when one of three servers fell silent | when that was their leader |")
	line("|---|---:|---:|---:|---:|---:|---:|")
	for _, s := range all {
		lost := s.total.Verdict.Lost - s.lostInWrites()
		line("| %s | %d | %d | %d | %s | %s | %s |", s.title, s.total.Overlapped, lost, len(s.total.Stuck), endedAlone(s.library, cells),
			silenced(s.library, cells, fault.StopFollower, fault.DropRoute), silenced(s.library, cells, fault.StopLeader))
	}
	line("")
	line("A dash: the servers have no leader. Locks outlived their processes by %v, and in the columns of silent servers by %v.", all[0].cells[0].TTL, silentTTL)
	line("")
	line("One thing no lock prevents: a process is stopped just before it writes, and writes when it goes on, after another one got its lock.")
	line("That cost %d changes here.", inWrites)
	if len(tokens) > 0 {
		line("A token helps, which each lock of %s has: a store that refuses tokens older than the newest that it has seen lost %d.", strings.Join(tokens, " and "), afterToken)
	}
	line("")
	line("After the kill of a process its lock goes to the next one when that time is over, with each of the libraries:")
	line("")
	line("![the time from the kill of a holder until the next grant](%s)", picture)
	line("")
	line("The rest of this page says what was done, how each library was used, and how to repeat it.")
	line("")
	return b.String()
}

// lostInWrites returns how many updates were lost because a client was stopped in its write.
func (s sum) lostInWrites() (n int) {
	for _, c := range s.cells {
		if c.Fault == fault.StopWrite {
			n += c.Verdict.Lost
		}
	}
	return n
}

// endedAlone says how many of the circles of waits ended by the failure of one wait.
func endedAlone(l library, cells []cell) string {
	var d judge.Deadlocks
	for _, c := range cells {
		if c.Library == l.name && c.Deadlocks != nil && c.Distance == 0 {
			d.Add(*c.Deadlocks)
		}
	}
	if d.Circles == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", d.Broken, d.Circles)
}

// silenced says how many of the locks held were lost to servers that fell silent.
func silenced(l library, cells []cell, kinds ...fault.Kind) string {
	var all judge.Silence
	for _, c := range cells {
		if c.Library == l.name && c.Silence != nil && slices.Contains(kinds, c.Fault) {
			all.Add(*c.Silence)
		}
	}
	if all.Held == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d", all.Lost, all.Held)
}
