package simulation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/internal/testkit/corekit"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/lease"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// breakage is a kind of fault of the ensemble, the network or a process.
type breakage struct {
	kind   string
	weight int
	do     func(w *world, p *process) (what string)

	expires bool // only in runs where an operator ends sessions
	deletes bool // only in runs where an operator deletes nodes
	calls   bool // it is a call of an operator, so it happens in quiet runs, too
	several bool // only with several servers
	lone    bool // it uses names that no worker uses, so not in runs whose clients are not the library's
	loses   bool // only in runs where the ensemble loses transactions
	silence bool // a server falls silent, or a connection: in runs where nothing else fails, too
}

// breakages are all these kinds, in the order of the table.
var breakages = []breakage{
	{kind: "connection killed", weight: 4, do: func(w *world, p *process) string {
		w.ensemble.KillConnection(p.session.Load())
		return fmt.Sprint("client ", p.index)
	}},
	{kind: "requests held", weight: 3, do: func(w *world, p *process) string {
		// What is sent now can arrive on a connection that the client has given up.
		release := memcontrol.Of(w.ensemble).HoldRequests(p.session.Load())
		return fmt.Sprint("client ", p.index, w.lasting("requests held", p, release))
	}},
	{kind: "replies held", weight: 3, do: func(w *world, p *process) string {
		release := memcontrol.Of(w.ensemble).HoldReplies(p.session.Load())
		return fmt.Sprint("client ", p.index, w.lasting("replies held", p, release))
	}},
	{kind: "client cut off", weight: 4, do: func(w *world, p *process) string {
		return w.cut("client cut off", p, fmt.Sprint("client ", p.index), memdriver.AroundSession(p.session.Load()))
	}},
	{kind: "client cut from a server", weight: 2, do: func(w *world, p *process) string {
		n := w.rng.IntN(w.p.servers)
		return w.cut("client cut from a server", p, fmt.Sprintf("client %d from server %d", p.index, n), memdriver.BetweenSession(p.session.Load(), n))
	}},
	{kind: "server cut from clients", weight: 2, silence: true, do: func(w *world, _ *process) string {
		n := w.aServer()
		return w.cut("server cut from clients", nil, fmt.Sprint("server ", n), memdriver.AroundClients(n))
	}},
	{kind: "follower cut off", weight: 7, several: true, do: func(w *world, _ *process) string {
		n := (max(w.ensemble.Leader(), 0) + 1 + w.rng.IntN(w.p.servers-1)) % w.p.servers
		return w.cut("follower cut off", nil, fmt.Sprint("server ", n), memdriver.AroundServer(n))
	}},
	{kind: "leader cut off", weight: 5, several: true, do: func(w *world, _ *process) string {
		n := max(w.ensemble.Leader(), 0)
		return w.cut("leader cut off", nil, fmt.Sprint("server ", n), memdriver.AroundServer(n))
	}},
	{kind: "two servers cut", weight: 2, several: true, do: func(w *world, _ *process) string {
		a := w.rng.IntN(w.p.servers)
		b := (a + 1 + w.rng.IntN(w.p.servers-1)) % w.p.servers
		return w.cut("two servers cut", nil, fmt.Sprintf("servers %d and %d", a, b), memdriver.BetweenServers(a, b))
	}},
	{kind: "caller gave up", weight: 2, lone: true, do: (*world).giveUp},
	{kind: "server restarted", weight: 2, do: func(w *world, _ *process) string {
		n := w.rng.IntN(w.p.servers)
		w.ensemble.Restart(n)
		return fmt.Sprint("server ", n)
	}},
	{kind: "leader restarted", weight: 2, several: true, do: func(w *world, _ *process) string {
		n := max(w.ensemble.Leader(), 0)
		w.ensemble.Restart(n)
		return fmt.Sprint("server ", n)
	}},
	{kind: "server lags", weight: 4, do: func(w *world, _ *process) string {
		n, d := w.rng.IntN(w.p.servers), w.between(time.Millisecond, simTimeout/2)
		memcontrol.Of(w.ensemble).Lag(n, d)
		return fmt.Sprintf("server %d by %v", n, d) + w.lasting("server lags", nil, func() { memcontrol.Of(w.ensemble).Lag(n, 0) })
	}},
	{kind: "transactions lost", weight: 8, loses: true, do: (*world).loseTransactions},
	{kind: "process stopped", weight: 5, do: func(w *world, p *process) string {
		thaw := w.freeze(p.session.Load())
		return fmt.Sprint("client ", p.index, w.lasting("process stopped", p, thaw))
	}},
	{kind: "clock jumped", weight: 1, do: func(w *world, _ *process) string {
		d := w.between(time.Millisecond, 2*simTimeout)
		lease.AddSuspended(d)
		return fmt.Sprint("all clients by ", d)
	}},
	{kind: "client closed", weight: 1, do: (*world).restart},
	{kind: "session expired", weight: 5, expires: true, do: func(w *world, p *process) string {
		w.ensemble.KillSession(p.session.Load())
		return fmt.Sprint("client ", p.index)
	}},
	{kind: "place broken", weight: 12, deletes: true, calls: true, do: (*world).breakPlace},
	{kind: "place revoked", weight: 2, calls: true, do: (*world).revokePlace},
	{kind: "node deleted", weight: 8, deletes: true, calls: true, do: func(w *world, _ *process) string {
		t, ok := w.choose(w.model.targets())
		if !ok {
			return "there is none"
		}
		w.model.doom(t)
		w.helpers.Go(func() { _ = memcontrol.Of(w.ensemble).Delete(t.path()) }) // an error does not matter: the node is gone already, or no server leads
		return t.String()
	}},
}

// restart closes a process's client, and gives it another one.
func (w *world) restart(p *process) string {
	old := p.client
	p.closing.Go(func() {
		if err := old.Close(); err != nil {
			w.model.violate("error", "close: %v", err)
		}
	})
	p.reopen(nil)
	return fmt.Sprint("client ", p.index)
}

// inject chooses a fault and makes it happen.
func (w *world) inject() {
	total := 0
	for i := range w.faults {
		if w.possible(&w.faults[i]) {
			total += w.faults[i].weight
		}
	}
	if total == 0 {
		return // the next server falls silent later
	}
	n := w.rng.IntN(total)
	p := w.clients[w.rng.IntN(len(w.clients))]
	for i := range w.faults {
		b := &w.faults[i]
		if !w.possible(b) {
			continue
		}
		if n -= b.weight; n < 0 {
			w.broke(b.kind, p, b.do(w, p))
			return
		}
	}
}

func (w *world) possible(b *breakage) bool {
	if w.p.trusting && b.kind == "process stopped" {
		return false // a stopped process cannot look at its connection: that is not the mistake to be found
	}
	if w.p.hush {
		return b.silence && w.rested()
	}
	return (!b.expires || w.p.operator) && (!b.deletes || w.p.operator || w.p.breaker) && (!w.p.quiet || b.calls) && (!b.several || w.p.servers > 1) && (!b.lone || !w.p.trusting) && (!b.loses || w.p.loses)
}

// broke records a fault. p is the process that it struck, nil for all.
func (w *world) broke(kind string, p *process, what string) {
	w.trace.note("FAULT %s: %s", kind, what)
	w.tally.injected(kind)
	w.recent[kind] = time.Now()
	w.model.broke(kind, p)
}

// lasting schedules end, which ends a fault, and returns as text how long the fault lasts.
func (w *world) lasting(kind string, p *process, end func()) string {
	d := w.between(time.Millisecond, simTimeout/4)
	switch n := w.rng.IntN(4); {
	case w.p.slow:
		d = w.between(simTimeout, 3*simTimeout)
	case n == 0:
		d = w.between(simTimeout/4, simTimeout)
	case n == 1:
		d = w.between(simTimeout, 2*simTimeout)
	}
	w.later(d, kind, func() {
		w.model.broke(kind, p)
		w.recent[kind] = time.Now()
		end()
	})
	return fmt.Sprint(" for ", d)
}

// later schedules f, which is called at the latest when all faults end.
func (w *world) later(d time.Duration, what string, f func()) {
	l := lift{time.Now().Add(d), what, f}
	at, _ := slices.BinarySearchFunc(w.lifts, l, func(a, b lift) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	w.lifts = slices.Insert(w.lifts, at, l)
}

// cut makes a partition that lasts for a while. Its connections fall silent or break.
func (w *world) cut(kind string, p *process, what string, c memdriver.Cut) string {
	if w.rng.IntN(4) == 0 {
		c = c.Reset()
		what += " by reset"
	}
	w.ensemble.Partition(c)
	return what + w.lasting(kind, p, func() { w.ensemble.Heal(c) })
}

// background is the context of calls that no other context ends.
var background = context.Background()

// giveUp acquires one or two names that are never used again. The create is applied late, and the
// caller gives up, as a rule before that.
func (w *world) giveUp(p *process) string {
	c, limit := p.client, w.between(time.Millisecond, simTimeout/2)
	w.lone++
	var a zklock.Acquirer = c.Mutex(loneName(w.lone))
	if w.rng.IntN(2) == 0 {
		w.lone++
		a = zklock.All(a, c.RWMutex(loneName(w.lone)).Reader())
	}
	w.strikes[p] = true
	w.late = corekit.Later(w.late, time.Now().Add(limit+10*time.Millisecond)) // the acquisition is over by then, too
	w.helpers.Go(func() {
		ctx, cancel := context.WithTimeout(background, limit)
		defer cancel()
		if l, err := a.Acquire(ctx); err == nil {
			_ = l.Release(background) // an error does not matter: the release goes on, or the lock was lost
		}
	})
	return fmt.Sprintf("client %d, %s within %v", p.index, a.Name(), limit)
}

const lonePrefix = "lone-"

func loneName(n int) string { return fmt.Sprint(lonePrefix, n) }

// isLone reports whether a path is that of a name that is used once, or below it.
func isLone(path string) bool { return strings.HasPrefix(path, "/zklock/"+lonePrefix) }
