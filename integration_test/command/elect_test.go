//go:build linux

package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

// reign prints its process and its token, and goes on. At TERM it ends with 3.
const reign = `trap 'exit 3' TERM; echo "$$ $ZKLOCK_TOKEN"; while :; do sleep 0.01; done`

// term is what a command of elect has printed.
type term struct {
	pid   int
	token zklock.Token
}

// terms waits until a process has printed n lines of reign, and returns them.
func (p *process) terms(t testing.TB, n int) []term {
	t.Helper()
	eventually(t, fmt.Sprintf("%v has led %d times", p.cmd.Args[1:], n), func() bool { return strings.Count(p.stdout.String(), "\n") == n })
	var all []term
	for line := range strings.Lines(p.stdout.String()) {
		var one term
		var text string
		if _, err := fmt.Sscan(line, &one.pid, &text); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		var err error
		if one.token, err = zklock.ParseToken(text); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// zombies counts the children of a process that have ended and that it has not waited for.
func zombies(t testing.TB, pid int) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range all {
		if child, err := strconv.Atoi(entry.Name()); err == nil {
			if stat := statOf(child); len(stat) > 1 && stat[0] == "Z" && stat[1] == strconv.Itoa(pid) {
				n++
			}
		}
	}
	return n
}

// TestElectRunsItsCommandAgain: a candidate resigns when its command has ended, the next one
// leads, and the first one stands again. TERM ends both, when the command is dead.
func TestElectRunsItsCommandAgain(t *testing.T) {
	t.Parallel()
	e := servers(t)
	watch, name := observer(t, e), newName(t)
	var candidates [2]*process
	for i := range candidates {
		candidates[i] = start(t, urlOf(e.Hosts()), nil, "elect", "--label", fmt.Sprint("candidate ", i), name, "--", "bash", "-c", reign)
		awaitQueue(t, watch, name, i+1)
		candidates[0].terms(t, 1)
	}
	last := candidates[0].terms(t, 1)[0]
	for round := range 4 {
		from, to := candidates[round%2], candidates[(round+1)%2]
		if queue := awaitQueue(t, watch, name, 2); queue[0].Label != fmt.Sprint("candidate ", round%2) || !queue[0].Held {
			t.Errorf("round %d: the leader is %+v", round, queue[0])
		}
		if err := syscall.Kill(last.pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		led := round/2 + 1 + round%2 // how often that candidate has led then
		next := to.terms(t, led)[led-1]
		if next.token.Compare(last.token) <= 0 {
			t.Errorf("token %v after %v", next.token, last.token)
		}
		awaitQueue(t, watch, name, 2) // the former leader stands again
		eventually(t, "the wrapper has waited for all of its children", func() bool { return zombies(t, from.cmd.Process.Pid) == 0 })
		last = next
	}
	waits, leads := candidates[1], candidates[0]
	waits.signal(t, syscall.SIGUSR1)
	waits.signal(t, syscall.SIGTERM)
	if code := waits.code(t); code != 128+15 {
		t.Errorf("a candidate that waits ended with %d after TERM", code)
	}
	awaitQueue(t, watch, name, 1)
	leads.signal(t, syscall.SIGTERM)
	if code := leads.code(t); code != 3 {
		t.Errorf("the leader ended with %d after TERM, want its command's 3", code)
	}
	awaitQueue(t, watch, name, 0)
	if n := strings.Count(leads.stderr.String(), "ended with 137"); n != 2 {
		t.Errorf("%d lines on commands that have ended, want 2: %s", n, leads.stderr.String())
	}
}

// TestElectStandsAgainAfterALoss: a leader whose server is cut off kills its command before the
// next one starts, and leads again when the connection is back.
func TestElectStandsAgainAfterALoss(t *testing.T) {
	t.Parallel()
	e := ownServers(t)
	watch, name := observer(t, e), newName(t)
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	follower := e.Followers()[0]
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, name: name, file: file, processes: 3}
	p.first = start(t, quickURL(follower.Addr()), []string{fileEnv + "=" + file, traitEnv + "=" + stubborn + parent + heirs, roleEnv + "=first"}, "elect", name, "--", self)
	eventually(t, "the first command works", func() bool { return len(p.pids()) == p.processes })
	p.second = start(t, urlOf(leader.Addr()), []string{fileEnv + "=" + file, roleEnv + "=second"}, "run", name, "--", self)
	awaitQueue(t, watch, name, 2)
	defer e.Heal()
	if err := e.CutFromLeader(follower); err != nil {
		t.Fatal(err)
	}
	if code := p.second.code(t); code != 0 {
		t.Errorf("the second run ended with %d: %s", code, p.second.stderr.String())
	}
	if found, second := p.overlaps(); len(found) > 0 || !second {
		t.Errorf("the second command started: %v; before the first was dead: %q", second, found)
	}
	e.Heal()
	if err := e.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first candidate leads again", func() bool { return len(p.pids()) == 2*p.processes })
	if n := p.alive(); n != p.processes {
		t.Errorf("%d processes of the first candidate are alive, want those %d of its second term", n, p.processes)
	}
	if n := strings.Count(p.first.stderr.String(), "stands again: "); n < 1 {
		t.Errorf("the loss was not reported: %s", p.first.stderr.String())
	}
	if err := os.WriteFile(file+".end", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the command has ended, with its children", func() bool { return p.alive() == 0 })
	p.first.signal(t, syscall.SIGINT)
	if code := p.first.code(t); code != 128+2 && code != 0 { // in the pause, or in another short term
		t.Errorf("%d after INT: %s", code, p.first.stderr.String())
	}
}

// TestElectExitCodes: mistakes end elect at once, and a candidate that does not lead within
// --wait ends with the code of -E.
func TestElectExitCodes(t *testing.T) {
	t.Parallel()
	e := servers(t)
	url := urlOf(e.Hosts())
	watch, held := observer(t, e), newName(t)
	lock, err := watch.Mutex(held).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release(t.Context())
	for _, c := range []struct {
		url  string
		args string // separated by spaces
		code int
		says string
	}{
		{url, "--wait 200ms " + held + " -- true", 75, "did not lead within"},
		{url, "--wait 200ms -E 9 " + held + " -- true", 9, "did not lead within"},
		{url, "x true", 64, "--"},
		{url, "x y -- true", 64, "one name"},
		{url, "a/../b -- true", 64, "a/../b"},
		{url, "--wait 0 x -- true", 64, "--wait"},
		{url, "--shared x -- true", 64, "--shared"},
		{url, "--permits 2 x -- true", 64, "--permits"},
		{url, "-o json x -- true", 64, "--observe"},
		{url, "--observe x -- true", 64, "no command"},
		{url, "--observe a/../b", 64, "a/../b"},
		{url, "--label " + strings.Repeat("x", 300) + " x -- true", 78, "at most 256"},
		{url + "&color=red", "x -- true", 78, "color"},
		{url, "--grace 15001ms x -- true", 78, "more than half"},
		{url, "x -- no-such-command", 127, "PATH"},
	} {
		code, stdout, stderr := finish(t, c.url, nil, append([]string{"elect"}, strings.Split(c.args, " ")...)...)
		if code != c.code || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 || stdout != "" {
			t.Errorf("elect %s: %d, %q, %q; want %d and one line about %q", c.args, code, stdout, stderr, c.code, c.says)
		}
	}
	awaitQueue(t, watch, held, 1)
}

// TestElectObservesTheLeaders: each leader is printed, as text and as JSON, and so is the time
// without one. TERM ends it.
func TestElectObservesTheLeaders(t *testing.T) {
	t.Parallel()
	e := servers(t)
	name := newName(t)
	text := start(t, urlOf(e.Hosts()), nil, "elect", "--observe", name)
	asJSON := start(t, urlOf(e.Hosts()), nil, "elect", "--observe", "-o", "json", name)
	await := func(n int) {
		t.Helper()
		for _, p := range []*process{text, asJSON} {
			eventually(t, "the observer prints the leaders", func() bool { return strings.Count(p.stdout.String(), "\n") == n })
		}
	}
	await(1)
	leader := start(t, urlOf(e.Hosts()), nil, "elect", "--label", "10.0.0.7:80\x1b", name, "--", "bash", "-c", reign)
	token := leader.terms(t, 1)[0].token
	await(2)
	leader.signal(t, syscall.SIGTERM)
	if code := leader.code(t); code != 3 {
		t.Errorf("the leader ended with %d", code)
	}
	await(3)
	for i, want := range []string{"none", "leads", "none"} {
		line := strings.Split(text.stdout.String(), "\n")[i]
		if f := strings.Fields(line); f[1] != want || want == "leads" && (f[3] != `10.0.0.7:80\x1b` || f[4] != token.String()) {
			t.Errorf("line %d: %s, want %s", i, line, want)
		}
		var state struct {
			Event  string
			Leader struct {
				Value, Token string
				PID          int
			}
		}
		line = strings.Split(asJSON.stdout.String(), "\n")[i]
		if err := json.Unmarshal([]byte(line), &state); err != nil || state.Event != want ||
			want == "leads" && (state.Leader.Value != "10.0.0.7:80\x1b" || state.Leader.Token != token.String() || state.Leader.PID != leader.cmd.Process.Pid) {
			t.Errorf("line %d: %v, %s, want %s", i, err, line, want)
		}
	}
	for _, p := range []*process{text, asJSON} {
		p.signal(t, syscall.SIGTERM)
		if code := p.code(t); code != 0 || p.stderr.String() != "" {
			t.Errorf("%d, %s", code, p.stderr.String())
		}
	}
}

// TestElectEndsByTheKeyOfATerminal: the terminal sends INT to the command's group alone, and the
// candidate does not stand again.
func TestElectEndsByTheKeyOfATerminal(t *testing.T) {
	e := servers(t)
	term := onTerminal(t, urlOf(e.Hosts()), "bash", "--norc", "-c", `
		"$ZKLOCK" elect "$LOCK" -- sh -c 'echo begun; exec sleep 100'
		echo "code $?"`)
	term.shows(t, "begun")
	term.press(t, ctrlC)
	term.shows(t, "code 130")
	term.code(t)
	if text := term.screen.String(); strings.Count(text, "begun") != 1 || strings.Contains(text, "stands again") {
		t.Errorf("the screen: %q", text)
	}
}
