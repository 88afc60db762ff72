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

	// Grants is how many locks were granted. An acquisition of two names has two.
	Grants int

	// Failed is how many acquisitions failed.
	Failed int

	// Losses is how many holds ended because the worker reported a loss.
	Losses int

	// Faults is how many faults there were.
	Faults int

	// Kills is how many processes of workers were killed, or ended by themselves.
	Kills int

	// Crashes is how many of them ended by themselves, though no fault killed them.
	Crashes int

	// Waits are the times from the end of a process that held a lock until the lock's next grant, in
	// rising order. Only names for which another process waited at that moment have one, and no hold whose release was
	// requested.
	Waits []time.Duration

	// Stuck are the names that no process got that was started after the faults: as an exclusive lock, as a shared one or as a
	// permit, if there were requests for such.
	Stuck []string

	// Leftovers are the acquisitions that may keep them.
	Leftovers []Leftover

	// Duration is the time from the first request to the last event.
	Duration time.Duration

	grantsAtWork int           // before the end of the workload
	atWork       time.Duration // from the first request until then
}

// asked is what an acquisition asks for.
type asked struct {
	name    string
	shared  bool
	permits int
}

// Measure judges a history by the plain check and adds the figures.
func Measure(events []history.Event) Figures {
	holds := Holds(events)
	f := Figures{Verdict: Plain(holds), Grants: len(holds)}
	var first, calm int64
	probed := make(map[asked]bool) // whether a process got it that was started after the faults
	probes := make(map[int]bool)   // these processes
	asking := make(map[int]history.Event)
	releasing := make(map[int]bool)
	for _, e := range events {
		switch e.Kind {
		case history.Start:
			probes[e.Worker] = calm > 0
		case history.Acquire:
			if first == 0 {
				first = e.At
			}
			asking[e.ID] = e
			what := asked{e.Name, e.Shared, e.Permits}
			probed[what] = probed[what] || false
		case history.Granted:
			if a := asking[e.ID]; probes[e.Worker] {
				probed[asked{a.Name, a.Shared, a.Permits}] = true
			}
			delete(asking, e.ID)
			f.Tokens = f.Tokens || e.Token != ""
		case history.Failed:
			if _, acquires := asking[e.ID]; acquires {
				f.Failed++
			}
			delete(asking, e.ID)
		case history.Release:
			releasing[e.ID] = true
		case history.Lost:
			f.Losses++
		case history.Fault:
			f.Faults++
		case history.Calm:
			calm = e.At
		case history.Kill:
			f.Kills++
			if e.Reason == history.Crashed {
				f.Crashes++
			}
			for id, a := range asking {
				if a.Worker == e.Worker {
					delete(asking, id)
				}
			}
			f.wait(holds, asking, releasing, e)
		}
		f.Duration = time.Duration(e.At - first)
	}
	for what, got := range probed {
		if calm > 0 && !got && !slices.Contains(f.Stuck, what.name) {
			f.Stuck = append(f.Stuck, what.name)
		}
	}
	f.grantsAtWork, f.atWork = f.Grants, f.Duration
	if calm > 0 {
		f.grantsAtWork, f.atWork = 0, time.Duration(calm-first)
	}
	for _, h := range holds {
		if calm > h.Granted {
			f.grantsAtWork++
		}
	}
	slices.Sort(f.Waits)
	slices.Sort(f.Stuck)
	f.Leftovers = leftovers(events, f.Stuck)
	return f
}

// wait adds the waits that a kill caused.
func (f *Figures) wait(holds []Hold, asking map[int]history.Event, releasing map[int]bool, kill history.Event) {
	for _, h := range holds {
		if h.Worker != kill.Worker || h.Ended != kill.At || releasing[h.ID] {
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

// PerSecond returns how many locks were granted in a second, until the end of the workload.
func (f Figures) PerSecond() float64 {
	if f.atWork <= 0 {
		return 0
	}
	return float64(f.grantsAtWork) / f.atWork.Seconds()
}

// Passed reports whether a library did what it should: its locks excluded each other, no name was stuck, no worker crashed,
// and a fenced register lost nothing; without tokens, a plain one.
func (f Figures) Passed() bool {
	safe := f.Safe()
	if !f.Tokens {
		safe = f.Overlaps == 0 && f.Lost == 0
	}
	return safe && len(f.Stuck) == 0 && f.Crashes == 0
}
