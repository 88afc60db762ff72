package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// judged are the suites that the judge of contrib/locktest runs: three servers, three processes of a worker, and all
// faults. Each uses zklock in another way, which is a mode of its worker.
var judged = []suite{
	judgeOf("mutex", "mutexes"),
	judgeOf("alone", "mutexes without hand-over inside the process"),
	judgeOf("async", "mutexes with asynchronous release"),
	judgeOf("keep", "kept names, with `keep`", "-names=9"),
	judgeOf("sessions", "four sessions for each process, and each is replaced when it is old"),
	judgeOf("dir", "`session_dir`; without faults of the network"),
	judgeOf("writer", "writers, with readers in the same queue"),
	judgeOf("all", "`All` of two names"),
	judgeOf("election", "elections, whose terms are the holds"),
	far(judgeOf("mutex", "mutexes of processes that are 20 or 80 ms away from the farthest server, with sessions of 10 s, on servers with ticks of 2 s")),
	judgeWith("curator", "Curator"),
	judgeWith("kazoo", "kazoo"),
	judgeWith("zk", "zk.Lock"),
}

// judgeOf is the suite of a mode of zklock's worker.
func judgeOf(mode, what string, flags ...string) suite {
	s := suite{
		name: "judge: " + mode, share: 3, waits: true, seeded: true,
		what: "the [judge](../contrib/locktest/README.md) of lock libraries: " + what,
		figures: []figure{
			{held, row("grants")}, {faults, row("faults")}, {lost, row("losses that a worker reported")},
			{violations, row("overlaps of work")}, {violations, row("overlaps after fencing")}, {violations, row("tokens that fell")},
			{violations, row("lost updates after fencing")}, {violations, row("names stuck after the faults")}, {violations, row("workers that crashed")},
		},
	}
	s.command = func(length time.Duration, seed int64) []string {
		return append([]string{
			"go", "run", "./contrib/locktest/cmd/locktest", "-library=zklock:" + mode, fmt.Sprintf("-for=%v", length),
			fmt.Sprintf("-seed=%d", seed), "-history=" + s.log(seed, ".ndjson"),
		}, flags...)
	}
	return s
}

// far is a suite of the judge with its processes at a distance, and with settings that users have.
func far(s suite) suite {
	near := s.command
	s.name += ", far"
	s.command = func(length time.Duration, seed int64) []string {
		return append(near(length, seed), "-ttl=10s", "-spread", fmt.Sprintf("-distance=%v", distances[1+seed%2]))
	}
	return s
}

// judgeWith is the suite of zklock's worker next to that of another library, whose locks it shares. That library
// has no tokens, and believes in its locks for a moment after it was stopped. So no client is stopped. Each overlap, each token that fell,
// each stuck name and each worker that crashed counts as a violation, since either library may be at fault: the judge says whose hold was overlapped, and which
// acquisitions may keep a name, and a person finds out whose fault it was.
func judgeWith(dialect, library string) suite {
	s := judgeOf(dialect, "mutexes that "+library+" and zklock share, with workers of both; no client is stopped",
		"-faults=killed|cut off|hear|refused|restart|delayed|dropped|jumps")
	alone := s.command
	s.command = func(length time.Duration, seed int64) []string {
		words := alone(length, seed)
		for i := range words {
			words[i] = strings.Replace(words[i], ":"+dialect, ":"+dialect+"+"+dialect, 1)
		}
		return words
	}
	s.peers = true
	s.figures = slices.DeleteFunc(s.figures, func(f figure) bool { return strings.Contains(f.pattern, "after fencing") }) // these need tokens
	return s
}

// row is the pattern of a row in the judge's table.
func row(title string) string { return `(?m)^\| ` + title + ` +\| +(\d+) \|` }
