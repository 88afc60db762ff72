package judge

import "github.com/zklock/go-zklock/contrib/locktest/history"

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
		for _, h := range overlaps(holds) {
			found[command[h.Worker]]++
		}
	}
	return found
}
