package main

import "testing"

func TestRotationHasTheSteadyLineAndEachOther(t *testing.T) {
	seen := make(map[string]int)
	for day := range 366 {
		pair := rotated(day)
		if len(pair) != 2 || pair[0].name != steady || pair[1].name == steady {
			t.Fatalf("day %d: %v", day, pair)
		}
		seen[pair[1].name]++
	}
	for _, l := range lines {
		if l.name != steady && seen[l.name] < 70 {
			t.Errorf("%s is chosen on %d days of 366", l.name, seen[l.name])
		}
	}
}
