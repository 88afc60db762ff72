package queue

import (
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Dialect is how a client names its queue nodes: the URL key of that name. Each
// is a promise to one foreign recipe, in whose terms the nodes are named, so
// that its contenders wait for ours and ours for them:
//
//	                                       dialect=
//	beside                                 zklock     curator    zk         kazoo
//	Curator's InterProcessReadWriteLock    excludes   conflict   conflict   conflict
//	Curator's InterProcessMutex            conflict   excludes   excludes   conflict
//	go-zookeeper's Lock                    conflict   excludes   excludes   conflict
//	kazoo's Lock                           conflict   conflict   conflict   excludes
//	kazoo's ReadLock and WriteLock         conflict   conflict   conflict   excludes
//
// No node name satisfies two recipes at once. Where the table says conflict,
// acquiring fails with ErrConflict, and names the dialect to use, when such a
// contender is seen in the queue. The other way round there is nobody to refuse:
// the foreign recipe looks for its own kind of node, finds none, and gets in
// beside a holder of ours. Only the right dialect, in all clients, excludes.
//
// What a dialect can hold:
//
//   - zklock: everything. Curator knows readers and writers; semaphores are ours
//     alone, and it does not wait for them. To Curator a writer that was
//     downgraded stays a writer. A writer of Curator's that takes the read lock
//     and gives the write lock back goes on as a reader that is waited for, with
//     releases that put its new node in the old one's place; with those that put
//     it at the end of the queue, such as 5.4.0, the next writer gets in.
//   - curator, zk: a Mutex, alone and in All. There are no readers and no
//     permits: those fail with ErrConflict.
//   - kazoo: mutexes, readers and writers, not permits. kazoo's plain Lock does
//     not wait for any readers, be they kazoo's: beside readers, use its
//     WriteLock. Its ReadLock waits for writers that came after it, too, which
//     wait for it: that is a deadlock among kazoo's own locks, and with ours.
//
// In all but zklock a name is a literal path below the root, made of real
// znodes: the lock orders/42 is <root>/orders/42. Names that ZooKeeper does not
// take, or with a segment that could pass for somebody's queue node, are
// ErrInvalidName. In curator and zk a lock below another lock would be taken for
// one of its contenders; that is ErrConflict. A lock above others, made after
// them, takes no notice of them. Data of a lock's znode is written over only if it
// is empty or our own mark. In kazoo all these znodes are
// persistent and stay: its locks make them once and rely on them.
type Dialect struct {
	Name   string
	Family family
	modes  []Mode // what its recipe can express
	serves string // the recipe, for errors
}

// Default is the dialect of a URL that has none. The others share locks with one recipe each.
var (
	Default        = &Dialect{"zklock", familyReadWrite, []Mode{Exclusive, Shared, Permit}, "Curator's InterProcessReadWriteLock"}
	dialectCurator = &Dialect{"curator", familyMutex, []Mode{Exclusive}, "Curator's InterProcessMutex"}
	dialectZK      = &Dialect{"zk", familyMutex, []Mode{Exclusive}, "go-zookeeper's Lock"}
	dialectKazoo   = &Dialect{"kazoo", FamilyKazoo, []Mode{Exclusive, Shared}, "kazoo's Lock, ReadLock and WriteLock"}
)

// Dialects are all dialects, the default first.
var Dialects = []*Dialect{Default, dialectCurator, dialectZK, dialectKazoo}

// ParseDialect returns the dialect of a name.
func ParseDialect(name string) (*Dialect, error) {
	names := make([]string, len(Dialects))
	for i, d := range Dialects {
		if names[i] = d.Name; d.Name == name {
			return d, nil
		}
	}
	return nil, fmt.Errorf("want one of %s", strings.Join(names, ", "))
}

// family is what recipes have in common that see each other's queue nodes.
//
//	familyReadWrite   [_c_<uuid>-]__WRIT__<10 digits>, __READ__ alike
//	familyMutex       [_c_<uuid or 32 hex digits>-]lock-<10 digits>
//	FamilyKazoo       <32 hex digits>__lock__<10 digits>, __rlock__ alike
type family uint8

const (
	familyReadWrite family = iota
	familyMutex
	FamilyKazoo
	Families = iota // how many there are
)

// Markers of the families that are not this library's own.
const (
	mutexMarker     = "lock-"
	kazooMarker     = "__lock__"
	kazooReadMarker = "__rlock__"
	uuidHexLen      = 32
)

// Literal reports whether names are paths as they stand.
func (d *Dialect) Literal() bool { return d.Family != familyReadWrite }

// Allows says why a kind of lock cannot be had in the dialect.
func (d *Dialect) Allows(k Kind) error {
	for _, m := range d.modes {
		if m == k.Mode {
			return nil
		}
	}
	return fmt.Errorf("%w: with dialect=%s there are no locks held as %v, %s knows none", errs.ErrConflict, d.Name, k.Mode, d.serves)
}

// Prefix is the name of a queue node up to its sequence suffix.
func (d *Dialect) Prefix(g GUID, k Kind) string {
	switch d {
	case dialectCurator:
		return protectedPrefix + g.String() + "-" + mutexMarker
	case dialectZK:
		return protectedPrefix + g.hex() + "-" + mutexMarker
	case dialectKazoo:
		if k.Mode == Shared {
			return g.hex() + kazooReadMarker
		}
		return g.hex() + kazooMarker
	}
	return protectedPrefix + g.String() + "-" + k.marker()
}

// Parse takes a child of a lock's znode apart. ok is false for a child that is
// no contender of the dialect; foreign, if not nil, is the dialect of those that
// it is a contender of, which do not see ours. A child without a sequence number is
// no contender of anything. One with a negative number has seq MaxSequence: servers
// before 3.6 count into the negative.
func (d *Dialect) Parse(node string) (q Node, foreign *Dialect, ok bool) {
	head, suffix, k, f, ok := classify(node)
	if !ok || !isSequence(suffix) {
		return Node{}, nil, false
	}
	if f != d.Family {
		return Node{}, dialectOf(head, f), false
	}
	q = Node{Name: node, Kind: k, Seq: parseSuffix(suffix)}
	q.GUID, _ = parseGUID(guidText(head, f))
	return q, nil, true
}

// dialectOf tells which dialect a foreign contender's clients share. Curator
// writes UUIDs with dashes, go-zookeeper without.
func dialectOf(head string, f family) *Dialect {
	switch {
	case f == familyReadWrite:
		return Default
	case f == FamilyKazoo:
		return dialectKazoo
	case len(guidText(head, f)) == uuidHexLen:
		return dialectZK
	}
	return dialectCurator
}

// guidText is the part of a node's name, as cut off its marker, that identifies
// the one who made it.
func guidText(head string, f family) string {
	if f == FamilyKazoo {
		return head
	}
	text, protected := strings.CutPrefix(head, protectedPrefix)
	text, dashed := strings.CutSuffix(text, "-")
	if !protected || !dashed {
		return ""
	}
	return text
}

// classify splits a node's name around its marker, as the recipes do: for
// Curator's read and write locks whatever follows the marker is the suffix, for
// the others it has to be a number.
func classify(node string) (head, suffix string, k Kind, f family, ok bool) {
	if head, suffix, k, ok = cutMarker(node); ok {
		return head, suffix, k, familyReadWrite, true
	}
	for _, m := range []struct {
		text string
		mode Mode
		f    family
	}{{kazooReadMarker, Shared, FamilyKazoo}, {kazooMarker, Exclusive, FamilyKazoo}, {mutexMarker, Exclusive, familyMutex}} {
		i := strings.LastIndex(node, m.text)
		if i < 0 {
			continue
		}
		if suffix = node[i+len(m.text):]; isSequence(suffix) {
			return node[:i], suffix, Kind{Mode: m.mode}, m.f, true
		}
	}
	return "", "", Kind{}, 0, false
}

// isSequence reports whether a suffix is what servers append: ten digits, or a
// negative number by those before 3.6.
func isSequence(s string) bool {
	digits, negative := strings.CutPrefix(s, "-")
	if len(s) != suffixLen && !(negative && len(digits) == suffixLen) {
		return false
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// Walks reports whether a queue that was listed once may be walked when q has
// left it. Nobody ever gets in ahead of a queue node of this library. With newer
// releases of Curator a writer that becomes a reader inserts a node with the
// writer's own sequence number, which stays when the writer's is gone. The other
// dialects make no such assumption about anybody.
func (d *Dialect) Walks(q Node) bool {
	return !d.Literal() && q.GUID != GUID{} && q.GUID.ours()
}

// ours reports whether a GUID has the form of this library's, which others' do
// not have: a random UUID has its variant's bits set where the serial has zeros.
func (g GUID) ours() bool { return g.Serial>>48 == 0 }

// hex returns the guid as 32 hexadecimal digits.
func (g GUID) hex() string {
	b := g.digits()
	return string(b[:])
}

// CheckName enforces the rules for names of the dialect.
func (d *Dialect) CheckName(name string) error {
	if err := CheckName(name); err != nil || !d.Literal() {
		return err
	}
	if r, ok := RefusedRune(name); ok {
		return fmt.Errorf("%w: with dialect=%s it is a path, in which ZooKeeper does not take the character %U", errs.ErrInvalidName, d.Name, r)
	}
	for segment := range strings.SplitSeq(name, "/") {
		if _, _, _, _, ok := classify(segment); ok {
			return fmt.Errorf("%w: with dialect=%s its segment %q would pass for a queue node", errs.ErrInvalidName, d.Name, segment)
		}
	}
	return nil
}

// Encode maps a name to the path of its znode below the root.
func (d *Dialect) Encode(name string) string {
	if d.Literal() {
		return name
	}
	return encodeName(name)
}

// ParentMode is the kind of znode that a lock's is made as.
func (d *Dialect) ParentMode() driver.Mode {
	if d == dialectKazoo {
		return driver.Persistent
	}
	return driver.Container
}

// ConflictWith is the error of meeting a contender of another dialect.
func (d *Dialect) ConflictWith(other *Dialect) error {
	return fmt.Errorf("%w: a contender of %s is in the queue, and does not wait for those of dialect=%s; use dialect=%s for this lock, in all clients",
		errs.ErrConflict, other.serves, d.Name, other.Name)
}
