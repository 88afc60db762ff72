package operator

import (
	"cmp"
	"slices"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// Branch is a line of a tree that shows what holds a name up, across names.
type Branch struct {
	Depth     int
	Relation  Relation
	Name      string    // the lock
	Contender Contender // of the relation
	Count     int       // of Others, Blocks and Deadlock
	Waiting   string    // of a Member: the name that it waits for
	Sure      bool      // of WaitsElsewhere and Circle: its client has registered that
	Ends      bool      // of a Member: its wait fails, so that the others go on
}

// Relation says what a Branch shows.
type Relation string

const (
	// Holding is a contender that holds the name.
	Holding Relation = "holds"

	// WaitsElsewhere is a name that the contender above waits for: its client has registered that, or it
	// is a wait of the same trace or, if one of them has none, of the same process.
	WaitsElsewhere Relation = "waits for"

	// Perhaps is a name that the process of the contender above waits for in another trace, or without a trace, if its client
	// has registered what other requests of it wait for, and nothing for the contender. It may be what the contender
	// waits for as well: of the requests of a process that want one name, the first one only is in the queue.
	Perhaps Relation = "perhaps"

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
	maxDepth   = 60 // 30 names
	maxHeight  = 60
	maxSide    = 5 // holders of a name
	maxPerhaps = 3 // names that a holder perhaps waits for: those with the longest waits
)

// forest makes trees.
type forest struct {
	locks []Lock
	known Register
	after map[held][]int   // by what is held, the positions of the locks that its holders have registered to wait for
	tells map[string]bool  // the processes that have registered a wait
	names map[string]int   // the positions of the locks
	of    map[string][]int // for a trace, and a process, the positions of the locks in whose queues it is
	lines []Branch
	seen  map[string]bool         // names whose holders, or waiters, are in lines
	shown []*zklock.DeadlockError // those that are in lines
}

// held is a contender of a lock.
type held struct{ name, zxid string }

func newForest(locks []Lock, known Register) *forest {
	f := &forest{locks: locks, known: known, after: make(map[held][]int), tells: make(map[string]bool), names: make(map[string]int), of: make(map[string][]int), seen: make(map[string]bool)}
	for i, l := range locks {
		f.names[l.Name] = i
		for _, c := range l.Contenders {
			for _, key := range []string{c.TraceID(), c.Identity()} {
				if at := f.of[key]; key != "" && (len(at) == 0 || at[len(at)-1] != i) {
					f.of[key] = append(at, i)
				}
			}
		}
	}
	for _, w := range known.Nested {
		h := held{w.Held, Hex(w.Zxid)}
		if to, ok := f.names[w.Waiting]; ok && !slices.Contains(f.after[h], to) {
			f.after[h] = append(f.after[h], to)
		}
	}
	for h := range f.after {
		if at, ok := f.names[h.name]; ok {
			for _, c := range locks[at].Contenders {
				if c.Zxid == h.zxid {
					f.tells[c.Identity()] = true
				}
			}
		}
	}
	return f
}

// near returns the locks in whose queues the trace or the process of a contender is.
func (f *forest) near(c Contender) (found []Lock) {
	at := slices.Concat(f.of[c.TraceID()], f.of[c.Identity()])
	slices.Sort(at)
	for _, i := range slices.Compact(at) {
		found = append(found, f.locks[i])
	}
	return found
}

// Tree returns what holds a lock up: below the holders of the name, the names that they wait for, with the
// holders of those, and so on to the processes that wait for nothing; then the waiters whose processes hold further
// names. What a holder has registered to wait for is followed first. Without that, contenders with the id of a
// trace are followed by that, and others by their process: that a process holds one name and waits for another does not
// show that one request of it does both. locks has all names.
//
// A holder in a deadlock that is known has that below it, in place of what it waits for.
//
// A candidate waits on purpose, and its process works meanwhile: the tree does not follow it. There is no tree if
// nothing waits for the name, except candidates, and its holders wait for nothing.
func Tree(l Lock, locks []Lock, known Register) []Branch {
	f := newForest(locks, known)
	f.up(l, 0, nil)
	f.down(l, 0)
	if l.Waiters() == 0 && !slices.ContainsFunc(f.lines, func(b Branch) bool { return b.Relation != Holding && b.Relation != Others }) {
		return nil
	}
	return f.lines
}

// Above returns the deadlocks with a wait that fits, and then what holds up some locks, which a process waits for:
// of each the holders, what these wait for, and so on.
func Above(waiting, locks []Lock, known Register, fits func(zklock.DeadlockLink) bool) []Branch {
	f := newForest(locks, known)
	for _, d := range Within(known.Dead, fits) {
		f.shown = append(f.shown, d)
		f.circle(d, 0)
	}
	for _, l := range waiting {
		if !f.seen[l.Name] {
			f.up(l, 0, nil)
		}
	}
	return f.lines
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
		for _, b := range f.waits(l, c) {
			b.Depth = depth + 1
			if slices.Contains(path, b.Name) {
				b.Relation = Circle
			}
			if f.add(b) && b.Relation != Circle && !f.seen[b.Name] {
				f.up(f.locks[f.names[b.Name]], depth+2, path)
			}
		}
	}
}

// waits returns what a holder of a lock waits for: what its client has registered, or else what its trace or its
// process waits for, and only if there is none of these, what its process does in other traces.
func (f *forest) waits(l Lock, c Contender) (found []Branch) {
	for _, i := range f.after[held{l.Name, c.Zxid}] {
		to := f.locks[i]
		b := Branch{Relation: WaitsElsewhere, Name: to.Name, Sure: true}
		if at := slices.IndexFunc(to.Contenders, func(w Contender) bool { return !w.Held && w.Same(c) }); at >= 0 {
			b.Contender = to.Contenders[at]
		}
		if to.Name != l.Name {
			found = append(found, b)
		}
	}
	for _, relation := range []Relation{WaitsElsewhere, Perhaps} {
		for _, other := range f.near(c) {
			if len(found) > 0 && found[0].Relation != relation || len(f.after[held{l.Name, c.Zxid}]) > 0 || other.Name == l.Name {
				continue
			}
			at := slices.IndexFunc(other.Contenders, func(w Contender) bool {
				return !w.Held && !w.Candidacy && (relation == WaitsElsewhere && f.follows(c, w) || relation == Perhaps && w.Identity() == c.Identity())
			})
			if at >= 0 {
				found = append(found, Branch{Relation: relation, Name: other.Name, Contender: other.Contenders[at]})
			}
		}
	}
	if len(found) > maxPerhaps && found[0].Relation == Perhaps {
		slices.SortStableFunc(found, func(a, b Branch) int {
			return cmp.Compare(uint64(a.Contender.Since-1), uint64(b.Contender.Since-1)) // 0, not known, is last
		})
		found = found[:maxPerhaps]
	}
	return found
}

// follows reports whether a waiter may be the request of a holder for which nothing is registered. Without traces, it is not
// if their process has registered waits, and the holder has been there for long: it would have registered that one.
func (f *forest) follows(c, w Contender) bool {
	young := c.Since != 0 && time.Since(time.UnixMilli(int64(c.Since))) < registersBy
	return w.Same(c) && (c.Trace != "" && w.Trace != "" || young || !f.tells[c.Identity()])
}

// registersBy is how old a holder is, at most, whose wait may not be registered yet: a client waits for deadlock_timeout before.
const registersBy = 10 * time.Second

// deadlocks adds the deadlocks in which a node of a name is, or with no node those that the name is in, unless
// they are there already. It reports whether there is one.
func (f *forest) deadlocks(name, node string, depth int) bool {
	found := Within(f.known.Dead, func(l zklock.DeadlockLink) bool {
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

// down adds the names that are held by those that wait for a lock, if others wait for those names.
func (f *forest) down(l Lock, depth int) {
	below := func(other Lock, c Contender) {
		waiters := other.Waiters()
		if waiters == 0 || f.seen[other.Name] {
			return
		}
		f.seen[other.Name] = true
		if f.add(Branch{Depth: depth, Relation: Blocks, Name: other.Name, Contender: c, Count: waiters}) {
			f.down(other, depth+1)
		}
	}
	for _, c := range l.Contenders {
		if c.Held || c.Candidacy {
			continue
		}
		for _, other := range f.near(c) {
			if slices.ContainsFunc(other.Contenders, func(h Contender) bool { return h.Held && h.Same(c) }) {
				below(other, c)
			}
		}
	}
	for _, w := range f.known.Nested { // those that wait behind another one of their process
		if at, ok := f.names[w.Held]; ok && w.Waiting == l.Name {
			other := f.locks[at]
			if h := slices.IndexFunc(other.Contenders, func(h Contender) bool { return h.Held && h.Zxid == Hex(w.Zxid) }); h >= 0 {
				below(other, other.Contenders[h])
			}
		}
	}
}
