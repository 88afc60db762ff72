package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// note is a test that did not pass, and the reason.
type note struct{ test, reason string }

// cell is the outcome of a suite on one version.
type cell struct {
	passed  int // tests without subtests
	failed  []note
	skipped []note
	left    bool // it was not run: the time was over before, or a rotation has it on another line
	took    time.Duration
	output  string
	logs    map[string]string // by test: what it logged
}

// String returns the outcome, the number of tests and the seconds.
func (c cell) String() string {
	total := c.passed + len(c.failed) + len(c.skipped)
	outcome := fmt.Sprintf("ok %d", c.passed)
	switch {
	case c.left:
		return "not run"
	case len(c.failed) > 0:
		outcome = fmt.Sprintf("FAILED %d of %d", len(c.failed), total)
	case c.passed == 0:
		outcome = fmt.Sprintf("skipped %d", len(c.skipped))
	case len(c.skipped) > 0:
		outcome = fmt.Sprintf("ok %d, skipped %d", c.passed, len(c.skipped))
	}
	return fmt.Sprintf("%s, %.0f s", outcome, c.took.Seconds())
}

var (
	// current is a line that names the test that the next lines are from.
	current = regexp.MustCompile(`^=== (?:RUN|NAME|CONT|PAUSE) +(\S+)`)

	// verdict is the line with the outcome of a test.
	verdict = regexp.MustCompile(`^ *--- (PASS|FAIL|SKIP): (\S+)`)

	// logged is a line that a test has logged.
	logged = regexp.MustCompile(`^ +\S+\.go:\d+: (.*)`)
)

// judge reads what a test binary has printed with -test.v. Each of the tests must be there: a
// test that was renamed must not leave its suite unnoticed.
func judge(output string, tests []string) cell {
	c := cell{logs: make(map[string]string)}
	outcomes := make(map[string]string) // by test
	var order []string
	first, last := make(map[string]string), make(map[string]string) // what a test has logged
	now := ""
	for line := range strings.Lines(output) {
		line = strings.TrimRight(line, "\n")
		if m := current.FindStringSubmatch(line); m != nil {
			now = m[1]
			if _, ok := outcomes[now]; !ok {
				outcomes[now] = ""
				order = append(order, now)
			}
			continue
		}
		if m := verdict.FindStringSubmatch(line); m != nil {
			outcomes[m[2]] = m[1]
			continue
		}
		if m := logged.FindStringSubmatch(line); m != nil {
			if first[now] == "" {
				first[now] = m[1]
			}
			last[now] = m[1]
		}
		c.logs[now] += line + "\n"
	}
	for _, name := range order {
		if slices.ContainsFunc(order, func(other string) bool { return strings.HasPrefix(other, name+"/") }) &&
			(outcomes[name] == "PASS" || slices.ContainsFunc(order, func(other string) bool {
				return strings.HasPrefix(other, name+"/") && outcomes[other] == "FAIL"
			})) {
			continue // its subtests count
		}
		switch outcomes[name] {
		case "PASS":
			c.passed++
		case "SKIP":
			c.skipped = append(c.skipped, note{name, last[name]})
		case "FAIL":
			c.failed = append(c.failed, note{name, first[name]})
		default:
			c.failed = append(c.failed, note{name, "it did not end"})
		}
	}
	for _, name := range tests {
		if !slices.Contains(order, name) {
			c.failed = append(c.failed, note{name, "it was not run"})
		}
	}
	return c
}
