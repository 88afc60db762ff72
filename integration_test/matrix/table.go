package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// row has the outcomes of one line.
type row struct {
	line    line
	version string
	cells   []cell // one for each suite
	absent  string // why the line has no cells
}

// title returns what the first column of the table has.
func (r row) title() string {
	if r.version == "" {
		return r.line.name
	}
	return r.version
}

// report prints the table in Markdown, what was skipped, and what failed. The error has the
// number of failures.
func report(w io.Writer, rows []row, chosen []suite, took time.Duration) error {
	head := []string{"ZooKeeper"}
	for _, s := range chosen {
		head = append(head, s.name)
	}
	lines := [][]string{head}
	passed, failed := 0, 0
	var notes []string
	for _, r := range rows {
		cells := []string{r.title()}
		if r.absent != "" {
			cells = append(cells, r.absent)
		}
		for i, c := range r.cells {
			cells = append(cells, c.String())
			passed += c.passed
			failed += len(c.failed)
			notes = append(notes, list(r, chosen[i], c)...)
		}
		for len(cells) < len(head) {
			cells = append(cells, "")
		}
		lines = append(lines, cells)
	}
	markdown(w, lines)
	fmt.Fprintln(w)
	for _, n := range notes {
		fmt.Fprintf(w, "- %s\n", n)
	}
	if len(notes) > 0 {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%d tests passed and %d failed in %v.\n", passed, failed, took.Round(time.Second))
	absent := slices.ContainsFunc(rows, func(r row) bool { return r.absent != "" && r.absent != errNotReleased.Error() })
	switch {
	case failed > 0:
		return fmt.Errorf("%d tests failed", failed)
	case absent:
		return fmt.Errorf("not all servers could be run")
	case passed == 0:
		return fmt.Errorf("no test was run")
	}
	return nil
}

// list returns a text for each reason why tests of a cell failed or were skipped.
func list(r row, s suite, c cell) (texts []string) {
	for _, group := range []struct {
		verb  string
		notes []note
	}{{"FAILED", c.failed}, {"skipped", c.skipped}} {
		byReason := make(map[string][]string)
		var reasons []string
		for _, n := range group.notes {
			if byReason[n.reason] == nil {
				reasons = append(reasons, n.reason)
			}
			byReason[n.reason] = append(byReason[n.reason], n.test)
		}
		for _, reason := range reasons {
			texts = append(texts, fmt.Sprintf("%s, %s: %s %s: %s", r.title(), s.name, group.verb, strings.Join(byReason[reason], ", "), reason))
		}
	}
	return texts
}

// markdown prints a table with columns of equal width.
func markdown(w io.Writer, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, cells := range lines {
		for i, c := range cells {
			widths[i] = max(widths[i], len(c))
		}
	}
	for n, cells := range lines {
		for i, c := range cells {
			fmt.Fprintf(w, "| %-*s ", widths[i], c)
		}
		fmt.Fprintln(w, "|")
		if n == 0 {
			for _, width := range widths {
				fmt.Fprintf(w, "|%s", strings.Repeat("-", width+2))
			}
			fmt.Fprintln(w, "|")
		}
	}
}
