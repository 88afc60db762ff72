package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// Level says what a finding means.
type Level string

// Levels of findings.
const (
	OK      Level = "ok"
	Unknown Level = "unknown" // doctor could not find it out
	Warning Level = "warning" // locks work, but it is good to know
	ToDo    Level = "to do"   // locks do not work, or are not safe
)

// Finding is one thing that was found.
type Finding struct {
	Level  Level  `json:"level"`
	What   string `json:"what"`
	Text   string `json:"text"`
	Advice string `json:"advice"` // what to do; "" if the level is OK or Unknown

	// Of a known fault of the servers' release, which may have no effect: the release and the fault.
	Release string `json:"release,omitempty"`
	Fault   string `json:"fault,omitempty"`
}

// Report is what was found.
type Report struct {
	Findings []Finding `json:"findings"`
	NoQuorum bool      `json:"noquorum"` // no quorum of the servers can be reached
	Misfit   bool      `json:"misfit"`   // no server could be examined, since the URL's scheme, port or TLS does not fit them
}

// order puts first what is wrong now: what is to be done, then warnings, and then what is not known. What is well follows, and
// then the known faults of releases. It changes nothing else about the order.
func (r *Report) order() {
	rank := func(f Finding) int {
		switch {
		case f.Level == ToDo:
			return 0
		case f.Level == Warning && f.Fault == "":
			return 1
		case f.Level == Unknown:
			return 2
		case f.Level == OK:
			return 3
		}
		return 4
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return rank(a) - rank(b) })
}

// Short returns the findings with the faults of each release in one.
func (r *Report) Short() (short []Finding) {
	faults := make(map[string][]string)
	for _, f := range r.Findings {
		faults[f.Release] = append(faults[f.Release], f.Fault)
	}
	for _, f := range r.Findings {
		all := faults[f.Release]
		switch {
		case f.Release == "":
			short = append(short, f)
		case f.Fault == all[0]:
			f.Text = f.Release + numbered(len(all), " has a known fault that concerns locks: ", " has %d known faults that concern locks: ") + strings.Join(all, ", ")
			f.Advice = newest + "; doctor -o wide says of each what it does, and what else helps"
			short = append(short, f)
		}
	}
	return short
}

// numbered returns the text for one thing, or that for another number of them, which it has.
func numbered(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(more, n)
}

func (r *Report) ok(what, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{Level: OK, What: what, Text: fmt.Sprintf(format, args...)})
}

func (r *Report) unknown(what, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{Level: Unknown, What: what, Text: fmt.Sprintf(format, args...)})
}

func (r *Report) warn(what, text, advice string) {
	r.Findings = append(r.Findings, Finding{Level: Warning, What: what, Text: text, Advice: advice})
}

func (r *Report) toDo(what, text, advice string) {
	r.Findings = append(r.Findings, Finding{Level: ToDo, What: what, Text: text, Advice: advice})
}

// Advice returns what to do, each only once; nothing if the ensemble is ready for locks.
func (r *Report) Advice() []string {
	var advice []string
	for _, f := range r.Findings {
		if f.Level == ToDo && !slices.Contains(advice, f.Advice) {
			advice = append(advice, f.Advice)
		}
	}
	return advice
}
