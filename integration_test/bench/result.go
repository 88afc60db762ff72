package main

import (
	"cmp"
	"slices"
)

// result has the figures of a row.
type result struct {
	Row    string               `json:"workload"`
	Rounds int                  `json:"rounds"` // of each run
	Who    []string             `json:"contestants"`
	Turns  map[string][]figures `json:"turns"` // by contestant, in order
	Absent map[string]string    `json:"absent,omitempty"`

	row row
}

// add adds the turns of another run of the same row. A contestant that is absent from one of
// the runs is absent from the result.
func (r *result) add(next result) {
	for who, why := range next.Absent {
		r.Absent[who] = why
	}
	for _, who := range r.Who {
		r.Turns[who] = append(r.Turns[who], next.Turns[who]...)
	}
	r.Who = slices.DeleteFunc(r.Who, func(who string) bool {
		_, absent := r.Absent[who]
		if absent {
			delete(r.Turns, who)
		}
		return absent
	})
}

// median returns the median of v, and 0 if v is empty.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v))
	if n := len(sorted); n%2 == 0 {
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[len(sorted)/2]
}

// has reports whether a contestant has a figure.
func (r result) has(who, figure string) bool {
	return slices.ContainsFunc(r.Turns[who], func(f figures) bool {
		_, ok := f[figure]
		return ok
	})
}

// median returns the median of a contestant's figure over the rounds of all runs.
func (r result) median(who, figure string) float64 {
	var v []float64
	for _, f := range r.Turns[who] {
		v = append(v, f[figure])
	}
	return median(v)
}

// measured returns the figure of a target: the median over the rounds of all runs, either of
// zklock's figure or of its ratio to the other contestant's figure in the same round. It
// returns false if neither was measured.
func (r result) measured(t target) (float64, bool) {
	v := r.each(t)
	return median(v), len(v) > 0
}

// spread returns the lowest and the highest of the medians of the single runs. It returns
// false if there was one run, or if a round lacks the figure.
func (r result) spread(t target) (lowest, highest float64, ok bool) {
	v := r.each(t)
	if r.Rounds == 0 || len(v) <= r.Rounds || len(v)%r.Rounds != 0 {
		return 0, 0, false
	}
	var medians []float64
	for run := range slices.Chunk(v, r.Rounds) {
		medians = append(medians, median(run))
	}
	return slices.Min(medians), slices.Max(medians), true
}

// each returns the figure of a target in each round that has it.
func (r result) each(t target) (v []float64) {
	for i, f := range r.Turns[cmp.Or(t.of, ours)] {
		mine, ok := f[t.figure]
		if !ok {
			continue
		}
		if t.against == "" {
			v = append(v, mine)
			continue
		}
		if i >= len(r.Turns[t.against]) {
			continue
		}
		theirs := r.Turns[t.against][i][t.figure]
		if t.inverse {
			mine, theirs = theirs, mine
		}
		if theirs != 0 {
			v = append(v, mine/theirs)
		}
	}
	return v
}
