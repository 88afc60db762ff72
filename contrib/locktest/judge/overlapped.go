package judge

import "github.com/zklock/go-zklock/contrib/locktest/history"

// Overlaps returns the holds whose sure parts other holds have overlapped, once for each overlap.
func Overlaps(holds []Hold) (overlapped []Hold) {
	for _, of := range byName(holds) {
		for _, o := range overlaps(of) {
			overlapped = append(overlapped, o.held)
		}
	}
	return overlapped
}

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
	for _, h := range Overlaps(Holds(events)) {
		found[command[h.Worker]]++
	}
	return found
}
