// Package history has what happened in a run, in the order of one clock: requests to workers, their
// answers, accesses to the registers, and faults.
//
// # The format
//
// A history is a text in which each line is a JSON object, an [Event]. The lines are in the order of
// their field at, the nanoseconds since the beginning of the run on locktest's monotonic clock. No two
// events have the same time. Locktest notes a request before it sends it, and an answer after it has
// read it. So a worker got a request after the request's time, and sent an answer before the answer's
// time. An access to a register is noted while the register is locked.
package history

// Kind is the kind of an event.
type Kind string

// Events of an acquisition, with its worker, id and name.
const (
	Acquire  Kind = "acquire"  // the request to acquire was sent
	Granted  Kind = "granted"  // the worker has answered that the lock is granted, with a token
	Read     Kind = "read"     // the work has read the register: value, fenced, refused
	Check    Kind = "check"    // the worker was asked whether it still holds the lock
	Held     Kind = "held"     // the worker has answered the newest check that it does
	Lost     Kind = "lost"     // the worker has reported that it does not
	Write    Kind = "write"    // the work has written its id to the register: refused
	Reread   Kind = "reread"   // the work of a shared hold has read the register again: value, fenced, refused
	Release  Kind = "release"  // the request to release was sent
	Released Kind = "released" // the worker has answered that the release is over
	Failed   Kind = "failed"   // the worker has answered that the acquire or the release failed
)

// Faults and the course of the run.
const (
	Start     Kind = "start"     // a process of a worker was started
	Kill      Kind = "kill"      // a process of a worker was killed, or ended by itself
	Fault     Kind = "fault"     // a fault begins: reason has its text, worker or server the victim
	Healed    Kind = "healed"    // the fault is over
	Recovered Kind = "recovered" // each client has had a lock since the fault was over, or since a server was killed
	Calm      Kind = "calm"      // the faults are over; names that are not granted from now on are stuck
	Settled   Kind = "settled"   // the run ends: each name was granted since, or the time for that is over
	Clock     Kind = "clock"     // the machine's wall clock at this moment, in wall
	Session   Kind = "session"   // a connection of the worker got a session of ZooKeeper: reason has its id, in hexadecimal
)

// GivenUp is the reason of a kill because a client has waited for a second lock too long.
const GivenUp = "given up"

// HolderKilled is the reason of a kill that measures how soon the lock of a process has its next holder.
const HolderKilled = "holder killed"

// Crashed is the reason of a kill that was none: the process has ended by itself.
const Crashed = "crashed"

// Event is a line of a history.
type Event struct {
	// At is the time since the beginning of the run in nanoseconds.
	At int64 `json:"at"`

	// Kind is what happened.
	Kind Kind `json:"kind"`

	// Worker is the number of the process of a worker. Each process that is started has a new one.
	Worker int `json:"worker,omitempty"`

	// Server is the number of a server that has a fault. The first one has number 1.
	Server int `json:"server,omitempty"`

	// ID is the number of the acquisition.
	ID int `json:"id,omitempty"`

	// Name is the name of the lock, and of the register that it protects. An acquisition of several locks at once has all names,
	// with + between them.
	Name string `json:"name,omitempty"`

	// Holding is the number of the acquisition whose lock the client of an acquire holds while it waits; 0:
	// it holds none.
	Holding int `json:"holding,omitempty"`

	// Shared reports that an acquire asks for a lock that others may hold shared at the same time.
	Shared bool `json:"shared,omitempty"`

	// Permits is of how many permits an acquire asks for one; 0: it asks for the whole lock.
	Permits int `json:"permits,omitempty"`

	// Token is the fencing token; "": none.
	Token Token `json:"token,omitempty"`

	// Value is what was read from the plain register: the id of the last acquisition that has written
	// to it, or 0.
	Value int `json:"value,omitempty"`

	// Fenced is what was read from the fenced register.
	Fenced int `json:"fenced,omitempty"`

	// Refused reports that the fenced register has refused the access, since it has seen a newer token.
	Refused bool `json:"refused,omitempty"`

	// Wall is a time of the wall clock, in nanoseconds since the Unix epoch.
	Wall int64 `json:"wall,omitempty"`

	// Reason is why something failed, the text of a fault, or the command of a process that was started.
	Reason string `json:"reason,omitempty"`
}
