package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Leftover is an acquisition that may keep a name that is stuck. It is the name's newest grant, or its process lives and
// the library has not said that it has given the lock back: it may have no answer, or hold the lock, or have failed
// and left something behind on the servers.
type Leftover struct {
	// Name is the name of the lock.
	Name string

	// ID is the number of the acquisition.
	ID int

	// Worker is the number of its process.
	Worker int

	// Command is the command that has started the process.
	Command string

	// Asked is the time of the request.
	Asked int64

	// Last is the newest that is known of it: no answer, granted, lost, released, failed with the reason, or that its
	// process was killed.
	Last string
}

// String says on a line which acquisition it is, and how it went.
func (l Leftover) String() string {
	return fmt.Sprintf("%s: process %d (%s) asked for it at %v, as acquisition %d: %s",
		l.Name, l.Worker, l.Command, time.Duration(l.Asked).Round(time.Millisecond), l.ID, l.Last)
}

// leftovers returns what may keep some names, in the order of the requests. Processes that were started after the
// faults find a name stuck, and are not the reason. An acquisition of several names may keep each of them.
func leftovers(events []history.Event, names []string) []Leftover {
	stuck := make(map[string]bool) // each name by itself
	for _, asked := range names {
		for name := range strings.SplitSeq(asked, "+") {
			stuck[name] = true
		}
	}
	keeps := func(asked string) bool {
		return slices.ContainsFunc(strings.Split(asked, "+"), func(name string) bool { return stuck[name] })
	}
	commands := make(map[int]string)
	probes := make(map[int]bool)       // the processes that were started after the faults
	all := make(map[int]*Leftover)     // by id
	newest := make(map[string]int)     // by name, the id of the newest grant
	over := make(map[int]history.Kind) // by id, of those that were released or whose process was killed
	calm := false
	for _, e := range events {
		switch e.Kind {
		case history.Start:
			commands[e.Worker], probes[e.Worker] = e.Reason, calm
		case history.Calm:
			calm = true
		case history.Acquire:
			if !probes[e.Worker] && keeps(e.Name) {
				all[e.ID] = &Leftover{Name: e.Name, ID: e.ID, Worker: e.Worker, Command: commands[e.Worker], Asked: e.At, Last: "no answer"}
			}
		case history.Kill:
			for id, l := range all {
				if l.Worker == e.Worker && over[id] == "" {
					l.Last, over[id] = "its process was killed", e.Kind
				}
			}
		case history.Granted, history.Lost, history.Released, history.Failed:
			l := all[e.ID]
			if l == nil {
				break
			}
			l.Last = strings.TrimSuffix(string(e.Kind)+": "+e.Reason, ": ")
			switch e.Kind {
			case history.Granted:
				newest[e.Name] = e.ID
			case history.Released:
				over[e.ID] = e.Kind
			}
		}
	}
	var left []Leftover
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if l := all[id]; over[id] == "" || newest[l.Name] == id {
			left = append(left, *l)
		}
	}
	return left
}
