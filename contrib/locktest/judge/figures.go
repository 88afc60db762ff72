package judge

import (
	"slices"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// Figures are what a table has of a history.
type Figures struct {
	Verdict

	// Tokens reports whether a grant had a fencing token. Without tokens a fenced register refuses nothing: it is
	// a plain one, and what the verdict says of fencing has no meaning.
	Tokens bool

	// Grants is how many acquisitions were granted.
	Grants int

	// Failed is how many acquisitions failed.
	Failed int

	// Losses is how many holds ended because the worker reported a loss.
	Losses int

	// Faults is how many faults there were.
	Faults int

	// Kills is how many processes of workers were killed, or ended by themselves.
	Kills int

	// Waits are the times from the end of a process that held a lock until the lock's next grant, in
	// rising order. Only names for which another process waited at that moment have one.
	Waits []time.Duration

	// Stuck are the names without a grant after the faults.
	Stuck []string

	// Leftovers are the acquisitions that may keep them.
	Leftovers []Leftover

	// Duration is the time from the first request to the last event.
	Duration time.Duration
}

// Measure judges a history by the plain check and adds the figures.
func Measure(events []history.Event) Figures {
	holds := Holds(events)
	f := Figures{Verdict: Plain(holds), Grants: len(holds)}
	var first, calm int64
	late := make(map[string]bool) // the names, and whether they were granted after the faults
	asking := make(map[int]history.Event)
	for _, e := range events {
		switch e.Kind {
		case history.Acquire:
			if first == 0 {
				first = e.At
			}
			asking[e.ID] = e
			late[e.Name] = late[e.Name] || false
		case history.Granted:
			delete(asking, e.ID)
			f.Tokens = f.Tokens || e.Token != ""
			late[e.Name] = calm > 0
		case history.Failed:
			if _, acquires := asking[e.ID]; acquires {
				f.Failed++
			}
			delete(asking, e.ID)
		case history.Lost:
			f.Losses++
		case history.Fault:
			f.Faults++
		case history.Calm:
			calm = e.At
			for name := range late {
				late[name] = false
			}
		case history.Kill:
			f.Kills++
			for id, a := range asking {
				if a.Worker == e.Worker {
					delete(asking, id)
				}
			}
			f.wait(holds, asking, e)
		}
		f.Duration = time.Duration(e.At - first)
	}
	for name, granted := range late {
		if calm > 0 && !granted {
			f.Stuck = append(f.Stuck, name)
		}
	}
	slices.Sort(f.Waits)
	slices.Sort(f.Stuck)
	f.Leftovers = leftovers(events, f.Stuck)
	return f
}

// wait adds the waits that a kill caused.
func (f *Figures) wait(holds []Hold, asking map[int]history.Event, kill history.Event) {
	for _, h := range holds {
		if h.Worker != kill.Worker || h.Ended != kill.At {
			continue
		}
		waits := false
		for _, a := range asking {
			waits = waits || a.Name == h.Name
		}
		next := slices.IndexFunc(holds, func(o Hold) bool { return o.Name == h.Name && o.Granted > kill.At })
		if waits && next >= 0 {
			f.Waits = append(f.Waits, time.Duration(holds[next].Granted-kill.At))
		}
	}
}

// Wait returns the wait that a part of all waits does not exceed: 0.5 for the median. It returns 0 if there
// was none.
func (f Figures) Wait(part float64) time.Duration {
	if len(f.Waits) == 0 {
		return 0
	}
	return f.Waits[min(int(part*float64(len(f.Waits))), len(f.Waits)-1)]
}

// PerSecond returns how many locks were granted in a second.
func (f Figures) PerSecond() float64 {
	if f.Duration <= 0 {
		return 0
	}
	return float64(f.Grants) / f.Duration.Seconds()
}

// Passed reports whether a library did what it should: its locks excluded each other, no name was stuck, and
// a fenced register lost nothing; without tokens, a plain one.
func (f Figures) Passed() bool {
	safe := f.Safe()
	if !f.Tokens {
		safe = f.Overlaps == 0 && f.Lost == 0
	}
	return safe && len(f.Stuck) == 0
}
