package judge

import (
	"cmp"
	"slices"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Overlapped counts the overlaps by the command of the worker whose hold's sure part another hold has overlapped.
// That worker believed in its hold for too long, or the other one got a lock that was not free. Each command of
// the history has a count, also 0.
func Overlapped(events []history.Event) map[string]int {
	command, found := make(map[int]string), make(map[string]int)
	for _, e := range events {
		if e.Kind == history.Start {
			command[e.Worker] = e.Reason
			found[e.Reason] += 0
		}
	}
	for _, holds := range byName(Holds(events)) {
		// A hold with a sure part begins when it is granted. One without existed at a moment after it was asked for.
		began := func(h Hold) int64 {
			if h.Sure == 0 {
				return h.Asked
			}
			return h.Granted
		}
		slices.SortFunc(holds, func(a, b Hold) int { return cmp.Compare(began(a), began(b)) })
		var longest Hold // of the sure parts that have begun, the one that ends last
		for _, h := range holds {
			if h.Granted <= longest.Sure {
				found[command[longest.Worker]]++
			}
			if h.Sure > longest.Sure {
				longest = h
			}
		}
	}
	return found
}
