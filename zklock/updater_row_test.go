package zklock

import (
	"fmt"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// This is the first of the two files of a new kind of lock. Outside of tests the row stands in
// internal/queue/kind.go, with the others, and the mode among the constants there.
//
// The kind of this example is the update lock of databases. Its holder reads together with other readers,
// and will write later. So it excludes other update locks. Writers exclude it, because the row of
// writers excludes every kind: exclusion is mutual, so one of two rows says it. A place of an update
// lock covers a reader's, so All of both takes the name with an update lock, and its holder may join
// as a reader with Reenter. That follows from what the two exclude.
//
// All other cells are as for a kind that allows nothing more: each acquisition has a place of its
// own, which is not handed over inside the process, joined, kept or lowered.
const update = queue.NewKind

func init() {
	added := queue.AddForTest(queue.Row{
		Name:     "update",
		Markers:  [queue.Families]string{queue.FamilyReadWrite: "__UPDT__"}, // so only dialect=zklock has it
		Excludes: queue.ModesOf(update),
		InAll:    true,
	})
	if added != update {
		panic(fmt.Sprintf("the mode of the row is %d, want %d: each mode before NewKind has a row in kind.go, and no other test adds one", added, update))
	}
}
