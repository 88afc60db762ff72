package judge

import (
	"slices"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Successions returns the times from the kill of a holder until the lock's next grant, in rising order. A process may have
// waited for the lock at that moment, or have been started after it. Only kills with the reason [history.HolderKilled]
// count, and none of a process whose lock was granted to another one before the kill.
func Successions(events []history.Event) []time.Duration {
	var times []time.Duration
	names := byName(Holds(events))
	for _, e := range events {
		if e.Kind != history.Kill || e.Reason != history.HolderKilled {
			continue
		}
		for _, holds := range names {
			i := slices.IndexFunc(holds, func(h Hold) bool { return h.Worker == e.Worker && h.Ended == e.At })
			if i >= 0 && i+1 < len(holds) && holds[i+1].Granted > e.At {
				times = append(times, time.Duration(holds[i+1].Granted-e.At))
			}
		}
	}
	slices.Sort(times)
	return times
}
