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

// ZooKeeper's usual tick, and a session of five of them, which -silent has if it has no other.
const (
	silentTick = 2 * time.Second
	silentTTL  = 10 * time.Second
)

// silentKinds are the faults of -silent.
var silentKinds = []fault.Kind{fault.StopFollower, fault.StopLeader, fault.DropRoute}

// fallSilent sets what the flags do not: one process that holds twelve locks and asks for others, on servers with ZooKeeper's usual tick.
func (o *options) fallSilent(f *flag.FlagSet) {
	set := make(map[string]bool)
	f.Visit(func(f *flag.Flag) { set[f.Name] = true })
	if !set["ttl"] {
		o.config.TTL = silentTTL
	}
	if !set["faults"] {
		var kinds []string
		for _, k := range silentKinds {
			kinds = append(kinds, string(k))
		}
		o.faults = "^(" + strings.Join(kinds, "|") + ")$"
	}
	o.config.Workers, o.config.LongHolds = 1, 0
	o.config.For = 9 * o.config.TTL / 2 // a fault, and a TTL after it
	for i := range 12 {
		o.config.Long = append(o.config.Long, fmt.Sprintf("held-%d", i+1))
	}
}

// silentPlan has each fault once. When one begins, the client is at the server that falls silent, and has had time to acquire its locks.
// A client of redis uses all servers all the time.
func silentPlan(kinds []fault.Kind, ttl time.Duration, backend string) (faults []fault.Fault) {
	confined := 1
	if backend == "redis" {
		confined = 0
	}
	for _, k := range kinds {
		faults = append(faults, fault.Fault{Kind: k, After: 2 * ttl, Lasts: ttl * 3 / 2, Confined: confined})
	}
	return faults
}

// silentHead is the head of the section about silent servers.
const silentHead = "## A server falls silent\n"

// silentSection is the section of the document about servers that fall silent; "": there are no results of them.
func silentSection(cells []cell) string {
	cells = slices.DeleteFunc(slices.Clone(cells), func(c cell) bool { return c.Silence == nil })
	if len(cells) == 0 {
		return ""
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	first := slices.MinFunc(cells, func(x, y cell) int { return x.At.Compare(y.At) })
	last := slices.MaxFunc(cells, func(x, y cell) int { return x.At.Compare(y.At) })
	b.WriteString(silentHead)
	line("")
	line("One process holds twelve locks, and two of its clients ask for others again and again. The server that it is connected to falls silent for %v:", last.TTL*3/2)
	line("its process is stopped, or nothing passes between it and the client. The two other servers go on; without the leader they elect")
	line("another one, those of ZooKeeper after `syncLimit` ticks. The TTL is %v, and servers of ZooKeeper have `tickTime=%d`, `initLimit=10` and `syncLimit=5`. These runs are %s.", last.TTL, silentTick.Milliseconds(), days(first.At, last.At))
	line("Longest wait: of one acquisition, or of the whole process from one grant to the next. The libraries ran on a busy machine. etcd has")
	line("the TTL as that of its leases, and its own timeouts of elections. The three servers of redsync have no leader, and its client uses all of them.")
	line("")
	line("| | the server | runs | locks lost | of | new sessions | longest wait | acquisitions that failed | stuck names |")
	line("|---|---|---:|---:|---:|---:|---:|---:|---:|")
	for _, l := range libraries {
		for _, k := range silentKinds {
			var sum judge.Silence
			runs, stuck := 0, 0
			var versions []string
			for _, c := range cells {
				if c.Library == l.name && c.Fault == k {
					sum.Add(*c.Silence)
					runs, stuck = runs+1, stuck+len(c.Stuck)
					if v := c.Version + " on " + l.backend + " " + c.Servers; !slices.Contains(versions, v) {
						versions = append(versions, v)
					}
				}
			}
			if runs > 0 {
				slices.Sort(versions)
				line("| %s %s | %s | %d | %d | %d | %d | %s | %d | %d |", l.title, strings.Join(versions, " and "), silentWords[k], runs, sum.Lost, sum.Held, sum.Sessions, sum.Longest.Round(100*time.Millisecond), sum.Failed, stuck)
			}
		}
	}
	line("")
	line("A lock is lost when the worker says so. Those of zk.Lock, Curator and kazoo take each end of a connection for a loss, as")
	line("[their documentation](#the-libraries) advises: where no session is new, the session and the locks' nodes have lived on, and the program still had to stop.")
	line("These clients leave a silent server when two thirds of the session timeout are over. etcd's leaves one by gRPC's keepalives, which are ten")
	line("seconds apart at least. Of redsync's servers a majority answers. zklock asks the other servers, and")
	line("leaves it within two seconds. Without a leader no server commits anything: at this TTL leases end before the")
	line("next one is there, so zklock gives locks and sessions up; at its default of 30 s [leases last longer](operations.md#timeouts). To repeat a row:")
	line("")
	line("```")
	line("go run ./contrib/locktest/cmd/locktest -library %s -silent -faults '%s'", cmp.Or(last.Library, "zk"), last.Fault)
	line("```")
	line("")
	return b.String()
}

// silentWords say of each fault what happens to the server.
var silentWords = map[fault.Kind]string{
	fault.StopFollower: "follows, and is stopped",
	fault.StopLeader:   "leads, and is stopped",
	fault.DropRoute:    "is cut off from the client",
}
