package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// What is the kind of a mistake. There is one for each count of a [Verdict].
type What string

// The kinds of mistakes.
const (
	OverlappedHold      What = "overlapped hold"                         // of Verdict.Overlaps
	TokenFell           What = "token that fell"                         // of Verdict.Fell
	LostUpdate          What = "lost update"                             // of Verdict.Lost
	RefusedHolder       What = "holder that the fenced register refused" // of Verdict.Refused
	OverlapAfterFencing What = "overlap after fencing"                   // of Verdict.FencedOverlaps
	LostAfterFencing    What = "lost update after fencing"               // of Verdict.FencedLost
)

// Mistake is all that is wrong with a hold in one way.
type Mistake struct {
	// What is the kind.
	What What

	// At is the time of the first one.
	At int64

	// Hold is the hold: the one that was overlapped, has the token that fell, or has lost the update of another.
	Hold Hold

	// By has the holds that show it, once for each mistake: those that were granted in the meantime, that has the greater token, or whose update
	// was lost. One with the ID 0 means that there is none.
	By []Hold

	// Command is the command of the worker of Hold.
	Command string

	// Fault says which faults were under way at that time, or which one was over last.
	Fault string
}

// Mistakes returns the mistakes of a history in the order of their times: those that [Plain] counts, grouped by kind and hold.
func Mistakes(events []history.Event) []Mistake {
	commands := make(map[int]string)
	for _, e := range events {
		if e.Kind == history.Start {
			commands[e.Worker] = e.Reason
		}
	}
	type group struct {
		what What
		name string
		id   int
	}
	at := make(map[group]int) // in all
	var all []Mistake
	found := look(Holds(events)).found
	slices.SortStableFunc(found, func(a, b single) int { return cmp.Compare(a.At, b.At) })
	for _, s := range found {
		g := group{s.What, s.h.Name, s.h.ID}
		i, known := at[g]
		if !known {
			i = len(all)
			at[g] = i
			all = append(all, Mistake{What: s.What, At: s.At, Hold: s.h, Command: commands[s.h.Worker], Fault: faultAt(events, s.At)})
		}
		all[i].By = append(all[i].By, s.by)
	}
	return all
}

// String says on a line when it was, what it was, and under which fault.
func (m Mistake) String() string {
	var by []string
	for _, h := range m.By[:min(len(m.By), mostBy)] {
		if h.ID != 0 {
			by = append(by, fmt.Sprintf("%d (process %d)", h.ID, h.Worker))
		}
	}
	text := fmt.Sprintf("%8s  %s: %s, acquisition %d of process %d", since(m.At), m.Hold.Name, m.What, m.Hold.ID, m.Hold.Worker)
	if m.Command != "" {
		text += " (" + m.Command + ")"
	}
	if len(by) > 0 {
		text += "; by " + strings.Join(by, ", ")
	}
	if more := len(m.By) - mostBy; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "; " + m.Fault
}

// mostBy is how many holds String names.
const mostBy = 3

// since is how a time of a history is written.
func since(at int64) string { return fmt.Sprintf("%.3fs", time.Duration(at).Seconds()) }

// ongoing is a fault, with when it was over; 0: the history ends before.
type ongoing struct {
	history.Event
	healed int64
}

// faults returns the faults of a history. The end of one names its victim, and belongs to the newest that goes on there.
func faults(events []history.Event) (all []ongoing) {
	for _, e := range events {
		switch e.Kind {
		case history.Fault:
			all = append(all, ongoing{Event: e})
		case history.Healed:
			for i := len(all) - 1; i >= 0; i-- {
				if f := &all[i]; f.healed == 0 && f.Worker == e.Worker && f.Server == e.Server {
					f.healed = e.At
					break
				}
			}
		}
	}
	return all
}

// victim names what has the fault.
func (f ongoing) victim() string {
	switch {
	case f.Server != 0:
		return fmt.Sprintf(" of server %d", f.Server)
	case f.Worker != 0:
		return fmt.Sprintf(" of process %d", f.Worker)
	}
	return ""
}

// faultAt says which faults were under way at a time; if there was none, which was over last.
func faultAt(events []history.Event, at int64) string {
	var now []string
	var last ongoing
	for _, f := range faults(events) {
		switch {
		case f.At > at:
		case f.healed == 0 || f.healed >= at:
			now = append(now, fmt.Sprintf("%v after %q%s began", time.Duration(at-f.At).Round(time.Millisecond), f.Reason, f.victim()))
		case f.healed >= last.healed:
			last = f
		}
	}
	switch {
	case len(now) > 0:
		return strings.Join(now, ", ")
	case last.healed != 0:
		return fmt.Sprintf("%v after %q%s was over", time.Duration(at-last.healed).Round(time.Millisecond), last.Reason, last.victim())
	}
	return "before the first fault"
}
