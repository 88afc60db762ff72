package main

import "testing"

func TestRotationHasTheSteadyLineAndEachOther(t *testing.T) {
	seen := make(map[string]int)
	for day := range 366 {
		pair := rotated(day)
		if len(pair) != 2 || position(pair[0]) >= position(pair[1]) || pair[0].name != steady && pair[1].name != steady {
			t.Fatalf("day %d: %v", day, pair)
		}
		for _, l := range pair {
			seen[l.name]++
		}
	}
	for _, l := range lines {
		if l.name != steady && seen[l.name] < 70 {
			t.Errorf("%s is chosen on %d days of 366", l.name, seen[l.name])
		}
	}
}

// Servers are upgraded to the next newer line that was fetched, whatever the order of the rows.
func TestUpgradesGoUp(t *testing.T) {
	var rows []row
	var servers []release
	for _, i := range []int{3, 4, 5, 0, 1, 2} {
		rows = append(rows, row{line: lines[i]})
		servers = append(servers, release{version: lines[i].name, folder: "/" + lines[i].name})
	}
	servers[2].folder, servers[4].folder = "", "" // 3.10 and 3.6 could not be fetched
	for i, want := range []string{"3.9", "", "", "3.7", "3.7", "3.8"} {
		if next := following(rows, servers, i); next.version != want {
			t.Errorf("%s is followed by %q, want %q", rows[i].line.name, next.version, want)
		}
	}
}
