// Package fault has the faults that locktest makes: when they happen, and the proxies that cut
// connections.
package fault

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The faults of clients. Each begins when the victim holds a lock.
const (
	KillClient  Kind = "client killed"             // SIGKILL; a new process starts when the fault is over
	StopClient  Kind = "client stopped"            // SIGSTOP, and SIGCONT when the fault is over
	StopWrite   Kind = "client stopped in a write" // SIGSTOP between a check and the write; the write follows SIGCONT at once
	CutClient   Kind = "client cut off"            // no byte passes in either direction
	HalfUp      Kind = "client heard by no server" // bytes from the client do not pass
	HalfDown    Kind = "client hears no server"    // bytes to the client do not pass
	ResetClient Kind = "client refused"            // its connections are reset, and new ones refused
	SlowClient  Kind = "client's link slow"        // bytes take a sixteenth of the TTL longer in either direction
)

// FadeOut strikes all clients: bytes take [Fault.Delay] longer in either direction, and from some moment in the middle of the next TTL on,
// which differs from client to client, none passes. So as many sessions expire as there are clients. No schedule of a [Plan] has it.
const FadeOut Kind = "clients fade out"

// The faults of servers.
const (
	KillServer   Kind = "server killed"       // SIGKILL; it starts again when the fault is over
	KillLeader   Kind = "leader killed"       // the same for the server that leads the others
	StopLeader   Kind = "leader stopped"      // SIGSTOP until another server leads, and SIGCONT when the fault is over
	StopFollower Kind = "follower stopped"    // SIGSTOP, and SIGCONT when the fault is over, of a server that does not lead
	CutFollower  Kind = "follower cut off"    // no byte passes between a server that does not lead and the others
	DropRoute    Kind = "route drops"         // no byte passes between one server and all clients; the servers hear each other
	Rolling      Kind = "rolling restart"     // SIGTERM, start, and wait until it serves, for one server after the other
	SlowDisk     Kind = "fsync delayed"       // each call of fsync and fdatasync takes longer
	Blink        Kind = "connections dropped" // of all clients to one server: reset, and accepted again at once
)

// The faults of wall clocks: an hour forward when the fault begins, and back when it is over. Clocks that
// only measure time go on as before.
const (
	JumpClient Kind = "clock of a client jumps" // not of programs in Go: see Clock
	JumpServer Kind = "clock of a server jumps" // the same
)

// Kinds are all kinds of faults.
var Kinds = []Kind{
	KillClient, StopClient, StopWrite, CutClient, HalfUp, HalfDown, ResetClient, SlowClient, JumpClient,
	KillServer, KillLeader, StopLeader, StopFollower, CutFollower, DropRoute, Rolling, SlowDisk, Blink, JumpServer,
}

// OfServer reports whether the victim is a server.
func (k Kind) OfServer() bool {
	switch k {
	case KillServer, KillLeader, StopLeader, StopFollower, CutFollower, DropRoute, Rolling, SlowDisk, Blink, JumpServer:
		return true
	}
	return false
}

// OfNetwork reports whether the fault needs proxies between clients and servers.
func (k Kind) OfNetwork() bool {
	switch k {
	case CutClient, HalfUp, HalfDown, ResetClient, SlowClient, FadeOut, DropRoute, Blink:
		return true
	}
	return false
}

// Fault is one fault.
type Fault struct {
	// Kind is what happens.
	Kind Kind

	// After is the time between the end of the fault before, or the beginning of the run, and this one.
	After time.Duration

	// Lasts is the time until the fault is over.
	Lasts time.Duration

	// Victim is the index of the client or the server.
	Victim int

	// Delay is how much longer bytes take in either direction before the clients of a FadeOut are cut off; 0: no longer.
	Delay time.Duration

	// Confined is the number of a client, from 1, that can reach no server but the one that a fault of a server strikes, until that
	// begins, or until it is over if a follower is cut off; 0: each client can reach all. Meanwhile the next client cannot
	// reach that server.
	Confined int
}

// String returns the fault as text, such as "client stopped for 1.2s".
func (f Fault) String() string {
	if f.Kind == Blink {
		return string(f.Kind)
	}
	return fmt.Sprintf("%s for %v", f.Kind, f.Lasts.Round(time.Millisecond))
}

// Plan is what a schedule is made from.
type Plan struct {
	// Seed decides about everything that is random. The same plan has the same schedule.
	Seed uint64

	// Kinds are the faults to choose from; none: no faults.
	Kinds []Kind

	// For is the length of the schedule. The last fault is over before that.
	For time.Duration

	// TTL is the time after which the locks of a dead client are free. Half of the faults last longer.
	TTL time.Duration

	// Clients and Servers are the numbers of possible victims. Without servers, no fault has a server as
	// its victim.
	Clients, Servers int
}

// Schedule returns the faults of a plan, one after the other. Each kind comes up once before a kind
// comes up again. A fault lasts from a tenth of the TTL to twice the TTL. Between two faults are from
// half of the TTL to one and a half.
func (p Plan) Schedule() []Fault {
	var kinds []Kind
	for _, k := range p.Kinds {
		if k.OfServer() && p.Servers > 0 || !k.OfServer() && p.Clients > 0 {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(p.Seed, 0xfa17))
	part := func(from, to float64) time.Duration {
		return time.Duration((from + rng.Float64()*(to-from)) * float64(p.TTL))
	}
	var faults []Fault
	for total := time.Duration(0); ; {
		for _, i := range rng.Perm(len(kinds)) {
			f := Fault{Kind: kinds[i], After: part(0.5, 1.5), Lasts: part(0.1, 1)}
			if rng.IntN(2) == 0 {
				f.Lasts = part(1, 2)
			}
			if f.Kind.OfServer() {
				f.Victim = rng.IntN(p.Servers)
			} else {
				f.Victim = rng.IntN(p.Clients)
			}
			if f.Kind == Blink {
				f.Lasts = 0
			}
			if total += f.After + f.Lasts; total > p.For {
				return faults
			}
			faults = append(faults, f)
		}
	}
}
