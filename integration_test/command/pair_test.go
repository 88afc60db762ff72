//go:build linux

package command_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// pair is a run whose command works, and a second run that waits for the same lock.
type pair struct {
	t             testing.TB
	name, file    string
	first, second *process
	processes     int // of the first command
}

// startPairs starts pairs at the same time, and returns when the commands of the first runs
// work and the second runs wait.
func startPairs(t testing.TB, n int, observer *zklock.Client, firstURL, secondURL, traits string, flags ...string) []*pair {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pairs := make([]*pair, n)
	for i := range pairs {
		p := &pair{t: t, name: newName(t), file: filepath.Join(t.TempDir(), "log"), processes: 1}
		if strings.Contains(traits, parent) {
			p.processes = 3
		}
		if err := os.WriteFile(p.file, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		env := []string{fileEnv + "=" + p.file, traitEnv + "=" + traits, roleEnv + "=first"}
		args := append(append([]string{"run"}, flags...), p.name, "--")
		if len(flags) > 0 && flags[0] == "--shell" {
			args = append(args, "'"+self+"' & wait")
			p.first = start(t, firstURL, env, args...)
		} else {
			p.first = start(t, firstURL, env, append(args, self)...)
		}
		pairs[i] = p
	}
	for _, p := range pairs {
		eventually(t, "the first command works", func() bool { return len(p.pids()) == p.processes })
		p.second = start(t, secondURL, []string{fileEnv + "=" + p.file, roleEnv + "=second"}, "run", p.name, "--", self)
	}
	for _, p := range pairs {
		awaitQueue(t, observer, p.name, 2)
	}
	return pairs
}

// member is a process of the first command.
type member struct {
	pid   int
	start string
}

// pids returns the processes of the first command, the first of them first.
func (p *pair) pids() []member {
	var all []member
	for _, line := range lines(p.t, p.file) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "first" && f[0] != "child" {
			continue
		}
		pid, err := strconv.Atoi(f[1])
		if err != nil {
			p.t.Fatal(err)
		}
		if m := (member{pid, f[2]}); f[0] == "first" {
			all = append([]member{m}, all...)
		} else {
			all = append(all, m)
		}
	}
	return all
}

// alive returns how many processes of the first command are alive.
func (p *pair) alive() int {
	n := 0
	for _, m := range p.pids() {
		if isAlive(m.pid, m.start) {
			n++
		}
	}
	return n
}

// overlaps returns what the file has of processes that were alive when the second command was,
// and whether the second command was there at all.
func (p *pair) overlaps() (found []string, second bool) {
	for _, line := range lines(p.t, p.file) {
		switch {
		case strings.HasPrefix(line, "second "):
			second = true
		case strings.HasPrefix(line, "overlap"), second:
			found = append(found, line)
		}
	}
	return found, second
}

// judge waits until both runs have ended. The first must have ended with a certain code, or, if
// early is set, with 0. The second command must have found none of the first's processes. It returns
// the code of the first run and the number of traces of an overlap.
func (p *pair) judge(code int, early bool) (got, overlaps int) {
	p.t.Helper()
	if got = p.first.code(p.t); got != code && !(early && got == 0) {
		p.t.Errorf("%s: the first run ended with %d, want %d: %s", p.name, got, code, p.first.stderr.String())
	}
	if got := p.second.code(p.t); got != 0 {
		p.t.Errorf("%s: the second run ended with %d: %s", p.name, got, p.second.stderr.String())
	}
	if n := p.alive(); n != 0 {
		p.t.Errorf("%s: %d processes of the first command are left", p.name, n)
	}
	found, second := p.overlaps()
	if !second {
		p.t.Errorf("%s: there was no second command", p.name)
	}
	if len(found) > 0 {
		p.t.Errorf("%s: the second command started before the first was dead: %d lines, such as %q", p.name, len(found), found[0])
	}
	return got, len(found)
}
