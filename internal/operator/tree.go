package operator

import (
	"fmt"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Branch is a line of a tree that shows which process must move for a name, across names.
type Branch struct {
	Depth     int
	Relation  Relation
	Name      string    // the lock
	Contender Contender // of the relation
	Count     int       // of Others, Blocks and Deadlock
	Waiting   string    // of a Member: the name that it waits for
	Ends      bool      // of a Member: its wait fails, so that the others go on
}

// Relation says what a Branch shows.
type Relation string

const (
	// Holding is a contender that holds the name.
	Holding Relation = "holds"

	// WaitsElsewhere is a name that the process of the contender above waits for.
	WaitsElsewhere Relation = "waits for"

	// Circle is such a name again, and not a Deadlock: the processes may wait for each other. So it shows
	// circles of waits that are in no register: those of other libraries, of clients with
	// deadlock_timeout=0, of contexts that do not carry the lock, for permits, and of the last moment.
	Circle Relation = "circle"

	// Deadlock is a circle of Count waits that the clients have registered. Each of them waits for the next,
	// and the last for the first.
	Deadlock Relation = "deadlock"

	// Member is a wait of the Deadlock above: the process holds Name, itself or by a caller of the request,
	// and waits for Waiting.
	Member Relation = "member"

	// Blocks is a name that the process of a waiter holds, and Count contenders wait for.
	Blocks Relation = "blocks"

	// Others are Count contenders that are left out.
	Others Relation = "others"
)

// The limits of a tree, so that a page can show it.
const (
	maxDepth  = 8
	maxHeight = 60
	maxSide   = 5 // holders of a name
)

// forest makes trees.
type forest struct {
	locks []Lock
	dead  []*zklock.DeadlockError
	of    map[string][]int // for a trace, and a process, the positions of the locks in whose queues it is
	lines []Branch
	seen  map[string]bool         // names whose holders, or waiters, are in lines
	shown []*zklock.DeadlockError // those that are in lines
}

func newForest(locks []Lock, dead []*zklock.DeadlockError) *forest {
	f := &forest{locks: locks, dead: dead, of: make(map[string][]int), seen: make(map[string]bool)}
	for i, l := range locks {
		for _, c := range l.Contenders {
			for _, key := range []string{c.TraceID(), c.process()} {
				if at := f.of[key]; key != "" && (len(at) == 0 || at[len(at)-1] != i) {
					f.of[key] = append(at, i)
				}
			}
		}
	}
	return f
}

// near returns the locks in whose queues the trace or the process of a contender is.
func (f *forest) near(c Contender) (found []Lock) {
	at := slices.Concat(f.of[c.TraceID()], f.of[c.process()])
	slices.Sort(at)
	for _, i := range slices.Compact(at) {
		found = append(found, f.locks[i])
	}
	return found
}

// Tree returns which processes must move so that the waiters of a lock go on, and which of its waiters
// keep others waiting: below the holders of the name, the names that their processes wait for, with
// the holders of those; then
// the waiters whose processes hold further names. Contenders with the id of a trace are followed by
// that. Of others only the process is known, and that a process holds one name and waits for another
// does not show that one request of it does both. locks has all names.
//
// dead has the deadlocks that are known. A holder in one of them has that below it, in place of what its
// process may wait for.
//
// A candidate waits on purpose, and its process works meanwhile: the tree does not follow it. If nothing
// but candidates waits for a leader, no process has to move, and there is no tree.
func Tree(l Lock, locks []Lock, dead []*zklock.DeadlockError) []Branch {
	if l.idle() {
		return nil
	}
	f := newForest(locks, dead)
	f.up(l, 0, nil)
	f.down(l, 0)
	return f.lines
}

// idle reports whether a lock has a leader, and no contender but candidates.
func (l Lock) idle() bool {
	return len(l.Contenders) > 0 && !slices.ContainsFunc(l.Contenders, func(c Contender) bool { return !c.Candidacy })
}

// add adds a line, and reports whether there is room for what is below it.
func (f *forest) add(b Branch) bool {
	if len(f.lines) < maxHeight {
		f.lines = append(f.lines, b)
	}
	return len(f.lines) < maxHeight && b.Depth < maxDepth
}

// up adds the holders of a lock, and below each what its process waits for. A wait for several names can be
// in a deadlock by a node that stands in the queue and does not hold: that deadlock is behind the holders.
func (f *forest) up(l Lock, depth int, path []string) {
	path = append(slices.Clone(path), l.Name)
	f.seen[l.Name] = true
	held := l.Holders()
	defer func() { f.deadlocks(l.Name, "", depth) }()
	for i, c := range held {
		if i == maxSide {
			f.add(Branch{Depth: depth, Relation: Others, Name: l.Name, Count: len(held) - i})
			return
		}
		if !f.add(Branch{Depth: depth, Relation: Holding, Name: l.Name, Contender: c}) {
			return
		}
		if f.deadlocks(l.Name, c.Node, depth+1) {
			continue
		}
		for _, other := range f.near(c) {
			at := slices.IndexFunc(other.Contenders, func(w Contender) bool { return !w.Held && !w.Candidacy && w.Same(c) })
			if at < 0 || other.Name == l.Name {
				continue
			}
			b := Branch{Depth: depth + 1, Relation: WaitsElsewhere, Name: other.Name, Contender: other.Contenders[at]}
			if slices.Contains(path, other.Name) {
				b.Relation = Circle
			}
			if f.add(b) && b.Relation != Circle && !f.seen[other.Name] {
				f.up(other, depth+2, path)
			}
		}
	}
}

// deadlocks adds the deadlocks in which a node of a name is, or with no node those that the name is in, unless
// they are there already. It reports whether there is one.
func (f *forest) deadlocks(name, node string, depth int) bool {
	found := Within(f.dead, func(l zklock.DeadlockLink) bool {
		return l.Held == name && (node == "" || l.Node == "" || l.Node == node)
	})
	for _, d := range found {
		if !slices.Contains(f.shown, d) {
			f.shown = append(f.shown, d)
			f.circle(d, depth)
		}
	}
	return len(found) > 0
}

// down adds the names that processes hold that wait for a lock, if others wait for those names.
func (f *forest) down(l Lock, depth int) {
	for _, c := range l.Contenders {
		if c.Held || c.Candidacy {
			continue
		}
		for _, other := range f.near(c) {
			waiters := other.Waiters()
			if waiters == 0 || f.seen[other.Name] || !slices.ContainsFunc(other.Contenders, func(h Contender) bool { return h.Held && h.Same(c) }) {
				continue
			}
			f.seen[other.Name] = true
			if f.add(Branch{Depth: depth, Relation: Blocks, Name: other.Name, Contender: c, Count: waiters}) {
				f.down(other, depth+1)
			}
		}
	}
}

// Mover returns the process that has to move so that the waiters of a lock go on: the end of the
// chain of holders that wait themselves, with the name that it holds; false if nothing holds the
// lock, or the chain is a circle.
func Mover(l Lock, locks []Lock, dead []*zklock.DeadlockError) (name string, c Contender, ok bool) {
	name = l.Name
	for _, b := range Tree(l, locks, dead) {
		switch {
		case b.Relation == Circle || b.Relation == Deadlock:
			return name, c, false
		case b.Relation == Others || b.Relation == Blocks:
			return name, c, ok
		case b.Relation == Holding && ok && b.Depth == 0:
			return name, c, true // a second holder
		case b.Relation == Holding:
			name, c, ok = b.Name, b.Contender, true
		}
	}
	return name, c, ok
}

// String returns the line as text, without its depth.
func (b Branch) String(now time.Time) string {
	c := b.Contender
	switch b.Relation {
	case Holding:
		return c.Named() + " " + c.verb() + " " + b.Name + ", " + c.Lasts(now)
	case WaitsElsewhere:
		return "its process waits for " + b.Name + b.waited(now)
	case Circle:
		return "its process waits for " + b.Name + b.waited(now) + ": a circle, if one request does both; it is not registered as a deadlock"
	case Deadlock:
		if b.Count == 1 {
			return "deadlock: this wait waits, perhaps over others, for what it holds"
		}
		return fmt.Sprintf("deadlock: each of these %d waits for the next, and the last for the first", b.Count)
	case Member:
		text := c.Named() + " holds " + b.Name
		if c.Node == "" {
			text += ", by a caller,"
		}
		text += " and waits for " + b.Waiting
		if b.Ends {
			text += ": this wait fails, and the others go on"
		}
		return text
	case Blocks:
		return fmt.Sprintf("%s waits here, and its process holds %s: %d wait for that", c.Named(), b.Name, b.Count)
	}
	return fmt.Sprintf("and %d more hold %s", b.Count, b.Name)
}

// verb returns what a holder does.
func (c Contender) verb() string {
	if c.Candidacy {
		return "leads"
	}
	return "holds"
}

// waited returns how long the contender has waited, if that is known.
func (b Branch) waited(now time.Time) string {
	if b.Contender.Since == 0 {
		return ""
	}
	return ", since " + b.Contender.Since.Age(now, false)
}
