package doctor

import (
	"fmt"
	"slices"
)

// Level says what a finding means.
type Level string

// Levels of findings.
const (
	OK      Level = "ok"
	Warning Level = "warning" // locks work, but it is good to know
	ToDo    Level = "to do"   // locks do not work, or are not safe
)

// Finding is one thing that was found.
type Finding struct {
	Level  Level  `json:"level"`
	What   string `json:"what"`
	Text   string `json:"text"`
	Advice string `json:"advice"` // what to do; "" if the level is OK
}

// Report is what was found.
type Report struct {
	Findings []Finding `json:"findings"`
	NoQuorum bool      `json:"noquorum"` // no quorum of the servers can be reached
}

func (r *Report) ok(what, format string, args ...any) {
	r.Findings = append(r.Findings, Finding{Level: OK, What: what, Text: fmt.Sprintf(format, args...)})
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
