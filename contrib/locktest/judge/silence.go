package judge

import (
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Silence is what the faults of a run have cost in which a server falls silent, and other servers go on.
type Silence struct {
	Held     int // locks that were held when a fault began
	Lost     int // of them, those that the worker has reported as lost, until the clients stopped
	Sessions int // of ZooKeeper that clients have opened since the first fault, in place of those that they have lost
	Failed   int // acquisitions that failed between the beginning of a fault and its end

	// Longest is the longest wait that a fault had a part in: of one acquisition, or of the whole run from one grant to the next.
	Longest time.Duration
}

// Add adds the figures of another run.
func (s *Silence) Add(o Silence) {
	s.Held += o.Held
	s.Lost += o.Lost
	s.Sessions += o.Sessions
	s.Failed += o.Failed
	s.Longest = max(s.Longest, o.Longest)
}

// MeasureSilence returns the figures of a history.
func MeasureSilence(events []history.Event) (s Silence) {
	holds := Holds(events)
	held := make(map[int]bool)     // by id: it was held when a fault began
	known := make(map[string]bool) // sessions
	asked := make(map[int]int64)   // by id: it has no answer
	var began, granted int64       // of the newest fault; the newest grant
	broken := false
	wait := func(from, to int64) {
		if began > 0 && to > began {
			s.Longest = max(s.Longest, time.Duration(to-from))
		}
	}
	for _, e := range events {
		switch e.Kind {
		case history.Fault:
			began, broken = e.At, true
			for _, h := range holds {
				if h.Granted < e.At && (h.Ended == 0 || h.Ended > e.At) && !held[h.ID] {
					held[h.ID] = true
					s.Held++
				}
			}
		case history.Healed:
			broken = false
		case history.Session:
			if began > 0 && !known[e.Reason] {
				s.Sessions++
			}
			known[e.Reason] = true
		case history.Acquire:
			asked[e.ID] = e.At
		case history.Granted, history.Failed:
			from, acquires := asked[e.ID]
			if !acquires {
				break
			}
			wait(from, e.At)
			delete(asked, e.ID)
			if e.Kind == history.Granted {
				wait(max(granted, 1), e.At)
				granted = e.At
			} else if broken {
				s.Failed++
			}
		case history.Lost:
			if held[e.ID] {
				held[e.ID] = false
				s.Lost++
			}
		case history.Calm:
			wait(max(granted, 1), e.At)
			for _, from := range asked { // never answered
				wait(from, e.At)
			}
			return s
		}
	}
	return s
}
