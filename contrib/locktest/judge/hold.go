// Package judge says from a history whether a lock library did what a lock is for.
//
// # What is judged
//
// A hold is an acquisition that was granted. It is certain that the library believed in a hold from
// when the answer granted was read until the newest check that it answered with held was sent: that is
// the sure part of the hold. A message that is late, or a process that is stopped, makes the sure part
// shorter, never longer. So two sure parts that overlap are the library's fault, however busy the
// machine was. A hold without such a check has no sure part; the library believed in it at one moment
// at least, between acquire and granted.
//
// A work is a read of the register and the write after it. Two works that read the same value have
// lost an update.
//
// # Two judges
//
// [Plain] counts mistakes, in plain loops. [Porcupine] asks the linearizability
// checker of that name whether an order of all operations exists in which a mutex, and a register, do
// what the history says. Both read the same holds, and must agree.
package judge

import (
	"strings"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Hold is what a history says of an acquisition that was granted.
type Hold struct {
	// ID is the number of the acquisition.
	ID int

	// Name is the name of the lock.
	Name string

	// Worker is the number of the process.
	Worker int

	// Shared reports that others may hold the lock shared at the same time.
	Shared bool

	// Permits is of how many permits this is one; 0: it is the whole lock. Such a hold has no work.
	Permits int

	// Token is the fencing token; "": none.
	Token history.Token

	// Asked, Granted are the times of the request and of its answer.
	Asked, Granted int64

	// Sure is when the newest check that was answered with held was sent; 0: there was none.
	Sure int64

	// Ended is when the release was answered, or the worker reported a loss or was killed; 0: never.
	Ended int64

	// Read, Write are the times of the accesses to the register; 0: there was none. A shared hold reads again in place of
	// the write.
	Read, Write int64

	// Saw, SawFenced are what the read has returned from the plain and from the fenced register.
	Saw, SawFenced int

	// Again, AgainFenced are what the second read of a shared hold has returned.
	Again, AgainFenced int

	// ReadRefused, WriteRefused report that the fenced register has refused the access.
	ReadRefused, WriteRefused bool
}

// Holds returns the holds of a history, in the order in which they were granted. An acquisition of several names has a hold for
// each.
func Holds(events []history.Event) []Hold {
	asked := make(map[int]history.Event)
	checked := make(map[int]int64)
	at := make(map[int]int) // by id, the index of the first in holds
	var holds []Hold
	for _, e := range events {
		switch e.Kind {
		case history.Acquire:
			asked[e.ID] = e
		case history.Check:
			checked[e.ID] = e.At
		case history.Granted:
			at[e.ID] = len(holds)
			for name := range strings.SplitSeq(e.Name, "+") {
				a := asked[e.ID]
				holds = append(holds, Hold{ID: e.ID, Name: name, Worker: e.Worker, Shared: a.Shared, Permits: a.Permits, Token: e.Token, Asked: a.At, Granted: e.At})
			}
		case history.Kill:
			for i := range holds {
				if holds[i].Worker == e.Worker && holds[i].Ended == 0 {
					holds[i].Ended = e.At
				}
			}
		}
		i, granted := at[e.ID]
		if !granted || e.ID == 0 {
			continue
		}
		for ; i < len(holds) && holds[i].ID == e.ID; i++ {
			holds[i].note(e, checked[e.ID])
		}
	}
	return holds
}

// note adds an event of the acquisition, whose newest check was sent at a time.
func (h *Hold) note(e history.Event, checked int64) {
	switch e.Kind {
	case history.Held:
		h.Sure = checked
	case history.Lost, history.Released, history.Failed:
		if h.Ended == 0 {
			h.Ended = e.At
		}
	}
	if h.Name != e.Name {
		return // an access to the register of another name
	}
	switch e.Kind {
	case history.Read:
		h.Read, h.Saw, h.SawFenced, h.ReadRefused = e.At, e.Value, e.Fenced, e.Refused
	case history.Reread:
		h.Write, h.Again, h.AgainFenced, h.WriteRefused = e.At, e.Value, e.Fenced, e.Refused
	case history.Write:
		h.Write, h.WriteRefused = e.At, e.Refused
	}
}

// byName are the holds of each name, in the order in which they were granted.
func byName(holds []Hold) map[string][]Hold {
	names := make(map[string][]Hold)
	for _, h := range holds {
		names[h.Name] = append(names[h.Name], h)
	}
	return names
}
