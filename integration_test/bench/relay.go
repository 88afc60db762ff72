package main

import (
	"fmt"
	"slices"
	"time"
)

// relay makes two processes use one name in turn for a while: the first one r.relay times, and
// then the second one once. The figures are those of the second one.
func relay(t team, r row, name string, length time.Duration) (figures, error) {
	former, next := t[0], t[1]
	var acquires, releases []float64
	for end := time.Now().Add(length); len(acquires) == 0 || time.Now().Before(end); {
		if _, err := former.ask("use %s %s %d", r.kind, name, r.relay); err != nil {
			return nil, err
		}
		line, err := next.ask("use %s %s 1", r.kind, name)
		if err != nil {
			return nil, err
		}
		f, err := parseFigures(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", next.name, err)
		}
		acquires, releases = append(acquires, f["acquire"]), append(releases, f["release"])
	}
	slices.Sort(acquires)
	return figures{
		"total":     float64(len(acquires)),
		"acquire50": median(acquires),
		"acquire99": acquires[len(acquires)*99/100],
		"release50": median(releases),
	}, nil
}
