package queue

import (
	"fmt"
	"strconv"
)

// Mode says how a lock is held.
type Mode uint8

const (
	// Exclusive locks are held alone.
	Exclusive Mode = iota + 1

	// Shared locks are held together with other shared locks.
	Shared

	// Permit is one of a semaphore's permits.
	Permit

	// NewKind is the mode of the next kind of lock, which a test may add.
	NewKind
)

// Row is all that the layers need to know of a kind of lock. What a kind may do to a lock is decided here,
// and nowhere else: a new kind is a new row, and a public type that asks for it. What operators see of waits is
// decided from outside, by public modes and the names of nodes: internal/operator/waits.go needs the kind, too. TestRows has the rules
// for rows, with the reason for each.
//
// Clients of an earlier version do not know the marker of a new kind: they log its queue nodes as children
// that are not contenders, and do not wait for them. So such clients must not use names that have locks of
// a new kind.
type Row struct {
	// Name is what Mode.String returns, and what stands in the data of queue nodes.
	Name string

	// Markers has, by family of dialects, the text that a recipe looks for to find the sequence number
	// in a queue node's name; "" if the recipe has no locks of this kind.
	Markers [Families]string

	// Excludes has the modes of the contenders that must not hold at the same time. The later one in
	// the queue waits for the earlier one, whichever of the two rows names the other.
	Excludes Modes

	// Counted: the number of permits follows the marker in the node's name, and so many contenders
	// hold together, if none ahead asks for fewer. Such a kind conflicts with all others: see Conflict.
	Counted bool

	// LowersTo is the mode that a contender of this kind can become for good while it holds: by a
	// Downgrade, or because readers of its process have got its place. If it is the kind's own mode, a
	// Downgrade does nothing; if it is 0, a Downgrade fails.
	LowersTo Mode

	HandsOver bool // a place goes on to the next goroutine of the process without a request
	Joins     bool // goroutines of one process share one hold
	Keeps     bool // a client may keep a place that none of its goroutines uses
	InAll     bool // it can be one of several names of an All
}

// rows is the table, by mode.
var rows = table()

func table() []Row {
	return []Row{
		Exclusive: {
			Name:      "exclusive",
			Markers:   [Families]string{FamilyReadWrite: "__WRIT__", familyMutex: "lock-", FamilyKazoo: "__lock__", familyLatch: "latch-"},
			Excludes:  ^Modes(0),
			LowersTo:  Shared,
			HandsOver: true,
			Keeps:     true,
			InAll:     true,
		},
		Shared: {
			Name:      "shared",
			Markers:   [Families]string{FamilyReadWrite: "__READ__", FamilyKazoo: "__rlock__"},
			LowersTo:  Shared,
			HandsOver: true,
			Joins:     true,
			Keeps:     true,
			InAll:     true,
		},
		Permit: {
			Name:    "permit",
			Markers: [Families]string{FamilyReadWrite: "__PERM"},
			Counted: true,
		},
	}
}

// excluded has, by mode, the modes that Excludes reports: what a row names, and the modes whose rows
// name it.
var excluded = bothWays(rows)

// bothWays makes exclusion mutual: if one of two contenders has to be alone, neither may hold while the
// other does, whichever came first.
func bothWays(rows []Row) []Modes {
	all := make([]Modes, len(rows))
	for m := range rows {
		for o := range rows {
			if rows[m].Excludes.Has(Mode(o)) || rows[o].Excludes.Has(Mode(m)) {
				all[m] |= ModesOf(Mode(o))
			}
		}
	}
	return all
}

// AddForTest adds a row to the table, and returns its mode. Only init functions of tests call it: the
// table is read without a mutex.
func AddForTest(r Row) Mode {
	rows = append(rows, r)
	excluded = bothWays(rows)
	return Mode(len(rows) - 1)
}

// Modes is a set of modes.
type Modes uint16

// ModesOf returns the set of these modes.
func ModesOf(modes ...Mode) (s Modes) {
	for _, m := range modes {
		s |= 1 << m
	}
	return s
}

// Has reports whether a mode is in the set.
func (s Modes) Has(m Mode) bool { return s&(1<<m) != 0 }

// Exclude reports whether a mode excludes one of the set.
func (s Modes) Exclude(m Mode) bool { return excluded[m]&s != 0 }

// row returns a mode's row; one that allows nothing if there is no such mode.
func (m Mode) row() *Row {
	if int(m) >= len(rows) {
		m = 0
	}
	return &rows[m]
}

// String returns the mode's name in lower case.
func (m Mode) String() string {
	if name := m.row().Name; name != "" {
		return name
	}
	return "mode(" + strconv.Itoa(int(m)) + ")"
}

// Excludes reports whether contenders of the two modes must not hold at the same time, so that the
// later one waits for the earlier one. Contenders of a counted kind wait by their number instead.
func (m Mode) Excludes(o Mode) bool { return excluded[m].Has(o) }

// Known reports whether there is such a kind.
func (m Mode) Known() bool { return m.row().Name != "" }

// Covers reports whether a place in the queue with mode m may serve a holder of mode o: each contender
// that such a holder excludes is excluded by the place, too.
func (m Mode) Covers(o Mode) bool {
	return m == o || excluded[o]&^excluded[m] == 0 && !m.row().Counted && !o.row().Counted
}

// Lowered returns the row's LowersTo.
func (m Mode) Lowered() Mode { return m.row().LowersTo }

// Lowers reports whether a contender of the mode can become one of another mode while it holds.
func (m Mode) Lowers() bool { return m.Lowered() != 0 && m.Lowered() != m }

// HandsOver reports whether a place goes on to the next goroutine of the process without a request.
func (m Mode) HandsOver() bool { return m.row().HandsOver }

// Joins reports whether goroutines of one process share one hold.
func (m Mode) Joins() bool { return m.row().Joins }

// Keeps reports whether a client may keep a place that none of its goroutines uses.
func (m Mode) Keeps() bool { return m.row().Keeps }

// InAll reports whether the mode can be that of one of several names of an All.
func (m Mode) InAll() bool { return m.row().InAll }

// Kind is the kind of lock that a queue node is for. It decides which other contenders the
// node excludes. All contenders of one name must be of compatible kinds: see Conflict.
type Kind struct {
	Mode    Mode
	Permits int // the number of a semaphore's permits; 0 for kinds that are not counted
}

// String describes the kind for an error.
func (k Kind) String() string {
	if k.Mode.row().Counted {
		return fmt.Sprintf("one of %d permits", k.Permits)
	}
	return "the " + k.Mode.String() + " lock"
}
