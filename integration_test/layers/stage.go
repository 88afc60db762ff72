package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// stage is what a program does between two of its marks, and the functions that it calls for that: "local/queues.go
// Queues.Enter". Of its goroutines only the first counts, and those that have been started in the stage by one that
// counts. Others serve the session all the time. The calls of a goroutine are together, in their order, and those of the
// goroutines that it has started follow: a reader goes on like that, and their turns differ from run to run.
type stage struct {
	name  string
	calls []string // the most frequent ones, if the program repeats the stage
	times int      // how often it had these
}

// stages reads what a program with recorded functions has said. After the mark "end" nothing counts.
func stages(said io.Reader) (all []*stage, err error) {
	const first = "1"                     // the goroutine that calls main
	known := map[string]bool{first: true} // goroutines, with whether they count
	byName := make(map[string]*stage)
	times := make(map[string]int) // how often a stage had these calls
	var at *stage
	var order []string             // goroutines that count, in the order of their first calls in the stage
	calls := map[string][]string{} // of those
	end := func() {
		var walk []string
		for _, id := range order {
			walk = append(walk, calls[id]...)
		}
		if at != nil {
			all := at.name + "\n" + strings.Join(walk, "\n")
			if times[all]++; times[all] > at.times {
				at.calls, at.times = walk, times[all]
			}
		}
		for id := range known {
			known[id] = id == first
		}
		order, calls = nil, map[string][]string{}
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), " ", 4)
		switch {
		case fields[0] == "mark" && len(fields) == 2:
			end()
			if at = byName[fields[1]]; at == nil {
				at = &stage{name: fields[1]}
				byName[at.name], all = at, append(all, at)
			}
		case fields[0] == "call" && len(fields) == 4:
			id, by, function := fields[1], fields[2], fields[3]
			if _, old := known[id]; !old {
				known[id] = at != nil && known[by]
			}
			if at != nil && known[id] {
				if calls[id] == nil {
					order = append(order, id)
				}
				calls[id] = append(calls[id], function)
			}
		}
	}
	return slices.DeleteFunc(all, func(s *stage) bool { return s.name == "end" }), lines.Err()
}

// figures are what a reader of the calls of a stage goes through.
type figures struct {
	calls, files int
	changes      int // how often the next call is in another file, the first call included
	returns      int // how many of the changes lead to a file that was left before
}

func (s *stage) figures() (f figures) {
	seen, last := make(map[string]bool), ""
	for _, c := range s.calls {
		file, _, _ := strings.Cut(c, " ")
		f.calls++
		if file != last {
			f.changes++
			if seen[file] {
				f.returns++
			}
		}
		seen[file], last = true, file
	}
	f.files = len(seen)
	return f
}

// reportWalk records an Acquire and a Release that nothing delays, and prints their figures, with all calls on request.
func reportWalk(w io.Writer, module string, calls bool) error {
	all, err := record(module, filepath.Join(module, "integration_test/layers/walker"), walked())
	if err != nil {
		return err
	}
	for _, s := range all {
		f := s.figures()
		fmt.Fprintf(w, "%-8s %3d calls of functions, in %d files; %d changes of file, %d of them back to a file already left\n", s.name, f.calls, f.files, f.changes, f.returns)
		last := ""
		for i, c := range s.calls {
			if file, function, _ := strings.Cut(c, " "); calls {
				if file == last {
					file = ""
				}
				fmt.Fprintf(w, "%5d  %-28s %s\n", i+1, file, function)
			}
			last, _, _ = strings.Cut(c, " ")
		}
	}
	return nil
}
