package model

import (
	"maps"
	"testing"
)

// The exploration keeps one state of those that differ by the clients' names only. That leaves
// nothing out if clients are interchangeable: when any two exchange their names, a state keeps
// its representative, its verdict on the invariants, and the states after it.
func interchangeable[S comparable](t *testing.T, sys System[S], clients int, exchange func(s S, a, b int) S) {
	t.Helper()
	enough := 2000
	if underRace {
		enough = 200
	}
	known := make(map[S]bool)
	var todo []S
	find := func(s S) {
		if !known[s] && len(known) < enough {
			known[s] = true
			todo = append(todo, s)
		}
	}
	for _, s := range sys.Initial() {
		find(s)
	}
	changed := 0
	for near := true; len(todo) > 0; near = !near {
		var s S
		if last := len(todo) - 1; near {
			s, todo = todo[0], todo[1:]
		} else { // as far from the first state as is known
			s, todo = todo[last], todo[:last]
		}
		sys.Next(s, func(_ Step, to S) { find(to) })
		for a := range clients {
			for b := range a {
				other := exchange(s, a, b)
				if other != s {
					changed++
				}
				switch {
				case sys.Canonical(other) != sys.Canonical(s):
					t.Fatalf("a state and the one with clients %d and %d exchanged have different representatives:\n%+v\n%+v", a, b, s, other)
				case (sys.Check(other) == nil) != (sys.Check(s) == nil), (sys.Settled(other) == nil) != (sys.Settled(s) == nil):
					t.Fatalf("with clients %d and %d exchanged, a state does not break what it breaks:\n%+v\n%+v", a, b, s, other)
				case !maps.Equal(after(sys, other), after(sys, s)):
					t.Fatalf("with clients %d and %d exchanged, a state has other states after it:\n%+v\n%+v", a, b, s, other)
				}
			}
		}
	}
	if len(known) < enough || changed < enough/2 {
		t.Errorf("only %d states, of which an exchange changes %d", len(known), changed)
	}
}

// after returns how often a step leads from a state to each representative, from outside or not.
func after[S comparable](sys System[S], s S) map[any]int {
	type way struct {
		to      S
		outside bool
	}
	ways := make(map[any]int)
	sys.Next(s, func(step Step, to S) { ways[way{sys.Canonical(to), step.Outside}]++ })
	return ways
}

func TestClientsAreInterchangeable(t *testing.T) {
	for name, m := range map[string]Locks{
		"writers":             {Clients: 3, Modes: writers, Lag: 1, Reconnects: 2, Losses: 1, Breaks: 1, Late: 1},
		"readers and writers": {Clients: 4, Modes: both, Lag: 2, Reconnects: 1, Losses: 1, Downgrades: 1},
		"permits":             {Clients: 4, Modes: permits, Permits: 2, Lag: 1, Reconnects: 1},
	} {
		t.Run(name, func(t *testing.T) {
			interchangeable(t, m, m.Clients, func(s lockState, a, b int) lockState {
				s.clients[a], s.clients[b] = s.clients[b], s.clients[a]
				return s
			})
		})
	}
}

func TestProcessesAreInterchangeable(t *testing.T) {
	for name, m := range map[string]Places{
		"all faults":    {Processes: 3, Modes: both, Keep: true, Limit: 2, Txns: 1, Revokes: 1, Losses: 1, Shorts: 1},
		"two processes": {Processes: 2, Modes: both, Keep: true, Limit: 2, Txns: 1, Revokes: 1, Shorts: 1},
	} {
		t.Run(name, func(t *testing.T) {
			interchangeable(t, m, m.Processes, func(s placeState, a, b int) placeState {
				s.processes[a], s.processes[b] = s.processes[b], s.processes[a]
				return s
			})
		})
	}
}
