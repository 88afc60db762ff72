package queue

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zklock/go-zklock/internal/nearest"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Dialect is how a client names its queue nodes; the URL key "dialect" selects it. In each dialect
// the nodes are named as one other library names them, so that its contenders wait for those of
// zklock, and those of zklock for its contenders. docs/migrating.md has the table of the libraries
// that exclude each other in each dialect.
//
// No node name satisfies two recipes at once. Where that table says conflict, an acquisition
// fails with ErrConflict when it sees such a contender in the queue, and the error names the
// dialect to use. In the other direction nothing can be refused: the foreign recipe looks
// for its own kind of node, finds none, and takes the lock while a zklock client holds it.
// Only the right dialect, in all clients, makes the two exclude each other.
//
// The kinds of locks in each dialect:
//
//   - zklock: all. Curator knows readers and writers. Only zklock knows semaphores, and
//     Curator does not wait for them. For Curator a writer that was downgraded is still a
//     writer. A Curator writer can take the read lock and then give the write lock back.
//     With versions of Curator that put the reader's node at the writer's position, later
//     writers wait for that reader. With versions that put it at the end of the queue, such
//     as 5.4.0, the next writer gets in.
//   - curator, zk, latch: a Mutex, alone and in All, and so an election. Readers and permits
//     fail with ErrConflict.
//   - kazoo: mutexes, readers and writers, but no permits. kazoo's plain Lock does not wait
//     for readers, not even for kazoo's own: together with readers, use its WriteLock. Its
//     ReadLock also waits for writers that queued after it, and these wait for it: that is a
//     deadlock among kazoo's own locks, and also with those of zklock.
//
// In all dialects but zklock, a name is a literal path below the root, made of real znodes:
// the lock orders/42 is <root>/orders/42. Three kinds of names fail with ErrInvalidName: those
// that ZooKeeper does not accept as a path, that begin with "~", or that have a segment which
// could be taken for a queue node. In curator, zk and latch, a lock below another lock would be
// taken for one of its contenders; that fails with ErrConflict. A lock above others that is made
// after them ignores them. The data of a lock's znode is overwritten only if it is empty or is
// zklock's own mark. In kazoo these znodes are persistent and stay, because kazoo's locks create
// them once and rely on them.
type Dialect struct {
	Name   string
	Family family
	serves string // the name of its recipe, for errors
}

// Default is the dialect of a URL that does not name one. It and each of the others share
// locks with one recipe.
var (
	Default        = &Dialect{"zklock", FamilyReadWrite, "Curator's InterProcessReadWriteLock"}
	dialectCurator = &Dialect{"curator", familyMutex, "Curator's InterProcessMutex and LeaderSelector"}
	dialectZK      = &Dialect{"zk", familyMutex, "go-zookeeper's Lock"}
	dialectKazoo   = &Dialect{"kazoo", FamilyKazoo, "kazoo's Lock, ReadLock and WriteLock"}
	dialectLatch   = &Dialect{"latch", familyLatch, "Curator's LeaderLatch"}
)

// Dialects has all dialects, the default first.
var Dialects = []*Dialect{Default, dialectCurator, dialectZK, dialectKazoo, dialectLatch}

// ParseDialect returns the dialect with that name.
func ParseDialect(name string) (*Dialect, error) {
	names := make([]string, len(Dialects))
	for i, d := range Dialects {
		if names[i] = d.Name; d.Name == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("want one of %s%s", strings.Join(names, ", "), nearest.Hint(name, names))
}

const (
	protectedPrefix = "_c_"
	permitMarkerEnd = "__" // behind the number that follows a permit's marker
)

// Literal reports whether a lock's name is, unchanged, the path of its znode below the root.
func (d *Dialect) Literal() bool { return d.Family != FamilyReadWrite }

// Allows returns nil if the dialect has that kind of lock, and else an error that matches
// ErrConflict.
func (d *Dialect) Allows(k Kind) error {
	if k.Mode.row().Markers[d.Family] != "" {
		return nil
	}
	return fmt.Errorf("%w: dialect=%s has no locks of mode %v, because %s has none", errs.ErrConflict, d.Name, k.Mode, d.serves)
}

// Prefix returns the name of a queue node up to its sequence suffix.
func (d *Dialect) Prefix(g GUID, k Kind) string {
	row := k.Mode.row()
	marker := row.Markers[d.Family]
	if row.Counted {
		marker += strconv.Itoa(k.Permits) + permitMarkerEnd
	}
	switch d {
	case dialectKazoo:
		return g.hex() + marker
	case dialectZK:
		return protectedPrefix + g.hex() + "-" + marker
	}
	return protectedPrefix + g.String() + "-" + marker
}

// NodeLength returns the length of the name of a queue node.
func (d *Dialect) NodeLength(k Kind) int {
	row := k.Mode.row()
	n := len(protectedPrefix) + uuidLen + len("-") + len(row.Markers[d.Family]) + sequenceLen
	if row.Counted {
		n += len(strconv.Itoa(k.Permits)) + len(permitMarkerEnd)
	}
	switch d {
	case dialectKazoo:
		n += hexLen - len(protectedPrefix) - uuidLen - len("-")
	case dialectZK:
		n += hexLen - uuidLen
	}
	return n
}

// Parse parses the name of a child of a lock's znode. ok is false for a child that is not a
// contender of the dialect. If such a child is a contender in another dialect, foreign is
// that dialect; its clients do not see this dialect's nodes. A child without a sequence
// number is not a contender of any dialect. A child with a negative number gets the Seq
// MaxSequence: servers before 3.6 count on into the negative numbers.
func (d *Dialect) Parse(node string) (q Node, foreign *Dialect, ok bool) {
	q, of, numbered := classify(node)
	switch {
	case !numbered:
		return Node{}, nil, false
	case of.Family != d.Family:
		return Node{}, of, false
	}
	return q, nil, true
}

// classify takes a node's name apart around its marker, as the recipes do. of is the dialect
// that works with the library that made the node; nil if the name is of no recipe. For Curator's
// read and write locks anything may follow the marker; numbered reports whether it is a sequence
// number. For the others it must be one.
func classify(node string) (q Node, of *Dialect, numbered bool) {
	for _, of := range Dialects {
		for mode := range rows {
			marker := rows[mode].Markers[of.Family]
			i := strings.LastIndex(node, marker)
			if marker == "" || i < 0 {
				continue
			}
			head, suffix, kind := node[:i], node[i+len(marker):], Kind{Mode: Mode(mode)}
			if rows[mode].Counted {
				digits, rest, found := strings.Cut(suffix, permitMarkerEnd)
				kind.Permits, _ = strconv.Atoi(digits)
				if suffix = rest; !found || kind.Permits <= 0 || strconv.Itoa(kind.Permits) != digits {
					continue
				}
			}
			seq, numbered := sequence(suffix)
			if !numbered && of != Default {
				continue
			}
			if of != dialectKazoo {
				text, protected := strings.CutPrefix(head, protectedPrefix)
				text, dashed := strings.CutSuffix(text, "-")
				if head = text; !protected || !dashed {
					head = ""
				}
			}
			if of == dialectCurator && len(head) == hexLen {
				of = dialectZK // Curator writes UUIDs with dashes, and go-zookeeper without
			}
			return Node{Name: node, Seq: seq, Kind: kind, GUID: parseGUID(head)}, of, numbered
		}
	}
	return Node{}, nil, false
}

// Walks reports whether a client may go on with the queue that it listed before when q has
// left it, instead of listing again. It may if q is a node of this library: no other node
// ever appears ahead of such a node. In newer versions of Curator, a writer that becomes a
// reader inserts a node with the writer's own sequence number, which stays when the
// writer's node is gone. In the other dialects it never may: nothing is assumed there about
// any client.
func (d *Dialect) Walks(q Node) bool { return !d.Literal() && q.Ours() }

// CheckName checks a lock name against the rules of the dialect. Its error matches
// ErrInvalidName.
func (d *Dialect) CheckName(name string) error {
	if err := CheckName(name); err != nil || !d.Literal() {
		return err
	}
	if r, ok := RefusedRune(name); ok {
		return fmt.Errorf("%w: with dialect=%s it is a path, and ZooKeeper does not accept the character %U in paths", errs.ErrInvalidName, d.Name, r)
	}
	if strings.HasPrefix(name, LedgerMark) {
		return fmt.Errorf("%w: with dialect=%s it is a path, and those that begin with %q belong to package once", errs.ErrInvalidName, d.Name, LedgerMark)
	}
	if first, _, _ := strings.Cut(name, "/"); first == WaitsName {
		return fmt.Errorf("%w: with dialect=%s it is a path, and %s below the root is the register of long waits", errs.ErrInvalidName, d.Name, WaitsName)
	}
	for segment := range strings.SplitSeq(name, "/") {
		if _, of, _ := classify(segment); of != nil {
			return fmt.Errorf("%w: with dialect=%s its segment %q could be taken for a queue node", errs.ErrInvalidName, d.Name, segment)
		}
	}
	return nil
}

// Encode returns the path, below the root, of the znode of the lock with that name.
func (d *Dialect) Encode(name string) string {
	if d.Literal() {
		return name
	}
	return encodeName(name)
}

// WaitsName is the name, below the root, of the register of long nested waits: see package deadlock. No
// lock's znode is the register, or below it: a percent sign that Encode writes is before two hexadecimal
// digits, and CheckName refuses the name as the beginning of one that is a path.
const WaitsName = "%waits"

// Below returns the name of the lock whose znode is the child node of the znode of above,
// which is "" for the root. ok is false if the child neither belongs to a lock nor is above
// one: a queue node, a ledger, or the register of waits.
func (d *Dialect) Below(above, node string) (name string, ok bool) {
	if !d.Literal() {
		return decodeName(node)
	}
	if name = node; above != "" {
		name = above + "/" + node
	}
	return name, d.CheckName(name) == nil
}

// ParentMode returns the mode of the create of a lock's znode.
func (d *Dialect) ParentMode() driver.Mode {
	if d == dialectKazoo {
		return driver.Persistent
	}
	return driver.Container
}

// ConflictWith returns the error of an acquisition that has found a contender of another
// dialect in the queue.
func (d *Dialect) ConflictWith(other *Dialect) error {
	return fmt.Errorf("%w: a contender of %s is in the queue, and does not wait for contenders of dialect=%s; use dialect=%s for this lock, in all clients",
		errs.ErrConflict, other.serves, d.Name, other.Name)
}
