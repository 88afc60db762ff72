//go:build linux

package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ports"
	"github.com/zklock/go-zklock/zklock"
)

// TestRunExitCodes goes through the table of exit codes. Those of a lock that was lost, and of
// commands that signals have ended, are in faults as well.
func TestRunExitCodes(t *testing.T) {
	t.Parallel()
	e := servers(t)
	url := urlOf(e.Hosts())
	// The client learns why it has no session when a twentieth of the timeout is left: a second, for a
	// busy machine. The command waits for it while the others run.
	nowhere := "zk://" + ports.Refusing(t) + "/x?connect_timeout=20s"
	cutOff := start(t, nowhere, nil, "run", "x", "--", "true")
	dir := t.TempDir()
	for name, text := range map[string]string{"plain": "#!/bin/sh\n", "bad": "#!/nonexistent/interpreter\n", "script": "exit $((100 + $#))\n", "binary": "\x7fELF\x00\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bad", "script", "binary"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	owner, err := zklock.Open("zk://owner:secret@" + e.Hosts() + "/private?tick_time=500ms&session_timeout=6s")
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if err := owner.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	watch := observer(t, e)
	held := newName(t)
	lock, err := watch.Mutex(held).Acquire(t.Context(), zklock.WithLabel("night shift"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release(t.Context())

	for _, c := range []struct {
		url  string
		args string // separated by spaces
		code int
		says string // on standard error
	}{
		{url, "x -- true", 0, ""},
		{url, "x -- false", 1, ""},
		{url, "--shell x -- exit${IFS}201", 201, ""},
		{url, "--shell x -- kill${IFS}-9${IFS}$$", 128 + 9, ""},
		{url, "--shell x -- kill${IFS}-9${IFS}0", 128 + 9, ""}, // the guard is killed, too
		{url, "--try " + held + " -- true", 75, "another contender"},
		{url, "--try " + held + " -- true", 75, fmt.Sprintf("/%d \"night shift\" holds %q, asked ", os.Getpid(), held)},
		{url, "--wait 0 " + held + " -- true", 75, "another contender"},
		{url, "--wait 5s " + held + " -- true", 75, "not acquired"}, // the time also counts until there is a session,
		{url, "--try -E 0 " + held + " -- false", 0, "another contender"},
		{url, "--try -E 255 x " + held + " -- true", 255, "another contender"},
		{url, "--try --quiet " + held + " -- true", 75, ""},
		{url, "--try -q -E 0 " + held + " -- false", 0, ""},
		{url, "x true", 64, "--"},
		{url, "-- true", 64, "no name"},
		{url, "x --", 64, "no command"},
		{url, "a/../b -- true", 64, "a/../b"},
		{url, "--permits 2 x y -- true", 64, "one name"},
		{url, "--permits 0 x -- true", 64, "--permits"},
		{url, "--permits 2 --shared x -- true", 64, "together"},
		{url, "--shell x -- echo y", 64, "one argument"},
		{url, "--wait -1s x -- true", 64, "--wait"},
		{url, "-E 256 x -- true", 64, "255"},
		{url, "--bogus x -- true", 64, "bogus"},
		{"zk://" + e.Hosts() + "/private?tick_time=500ms", "x -- true", 77, "/private"},
		{"", "x -- true", 78, "ZKLOCK_URL"},
		{"zk://host:port", "x -- true", 78, "port"},
		{url + "&color=red", "x -- true", 78, "color"},
		{url, "--url zk://h/x?session_timeout=1s x -- true", 78, "session_timeout"},
		{url, "--grace 15001ms x -- true", 78, "more than half"},
		{"zk://" + e.Hosts() + root + "?tick_time=500ms&session_timeout=60s", "--grace 20s x -- true", 78, "more than half"}, // of what was granted
		{"zk://" + e.Hosts() + root + "?tick_time=11s&session_timeout=60s", "x -- true", 78, "granted 30s"},
		{"zk://" + e.Hosts() + root + "?create_root=false&dialect=nonsense", "x -- true", 78, "dialect"},
		{url, "--permits 2 " + held + " -- true", 78, "conflict"},
		{url, "x -- " + dir, 126, "cannot be executed"},
		{url, "x -- " + filepath.Join(dir, "plain"), 126, "cannot be executed"},
		{url, "x -- " + filepath.Join(dir, "script") + " one two", 102, ""},
		{url, "x -- " + filepath.Join(dir, "binary"), 126, "cannot be executed"},
		{url, "x -- " + filepath.Join(dir, "none"), 127, "not found"},
		{url, "x -- " + filepath.Join(dir, "bad"), 127, "interpreter"},
		{url, "x -- no-such-command", 127, "PATH"},
		{nowhere, "x -- true", 69, "connect"},
	} {
		p := cutOff
		if c.url != nowhere {
			p = start(t, c.url, nil, append([]string{"run"}, strings.Split(c.args, " ")...)...)
		}
		code, stdout, stderr := p.code(t), p.stdout.String(), p.stderr.String()
		if code != c.code || !strings.Contains(stderr, c.says) || (c.says == "") != (stderr == "") || stdout != "" {
			t.Errorf("run %s: %d, %q, %q; want %d and something about %q", c.args, code, stdout, stderr, c.code, c.says)
		}
		if n := strings.Count(stderr, "\n"); n > 1 && !strings.Contains(stderr, "granted a shorter") {
			t.Errorf("run %s: %d lines: %s", c.args, n, stderr)
		}
	}
}

// TestRunPassesEverythingThrough: zklock run passes its standard input, output and error, the
// arguments and the environment to the command. The environment has the lock names of this run, not
// those of an outer run.
func TestRunPassesEverythingThrough(t *testing.T) {
	t.Parallel()
	e := servers(t)
	url := urlOf(e.Hosts())
	cmd := start(t, url, []string{"ZKLOCK_NAME=outer", "ZKLOCK_TOKEN=outer", "OTHER=kept"},
		"run", "z/1", "a", "--", "sh", "-c", `cat; echo "$@" >&2; env | grep -c "^ZKLOCK_NAME="; echo "$ZKLOCK_NAME|$ZKLOCK_PATH|$OTHER"; echo "$ZKLOCK_TOKEN"`, "sh", "-x", "two words")
	if code := cmd.code(t); code != 0 {
		t.Fatalf("code %d: %s", code, cmd.stderr.String())
	}
	out := strings.Split(cmd.stdout.String(), "\n")
	want := []string{"1", "z/1", "a|" + root + "/z%2F1", root + "/a|kept"}
	if len(out) != 6 || !slices.Equal(out[:4], want) || cmd.stderr.String() != "-x two words\n" {
		t.Errorf("printed %q and %q, want %q", out, cmd.stderr.String(), want)
	}
	if token, err := zklock.ParseToken(out[4]); err != nil || token.IsZero() {
		t.Errorf("token %q: %v", out[4], err)
	}
	code, stdout, stderr := finishWith(t, url, "a line\n", "run", "x", "--", "cat")
	if code != 0 || stdout != "a line\n" || stderr != "" {
		t.Errorf("cat: %d, %q, %q", code, stdout, stderr)
	}
}

// TestRunSharesAndCounts: shared holders run together, and so do as many holders of permits as
// there are; a writer does not.
func TestRunSharesAndCounts(t *testing.T) {
	t.Parallel()
	e := servers(t)
	url, watch := urlOf(e.Hosts()), observer(t, e)
	for _, flags := range [][]string{{"--shared"}, {"--permits", "2"}} {
		name := newName(t)
		var holders []*process
		for range 2 {
			holders = append(holders, start(t, url, nil, slices.Concat([]string{"run"}, flags, []string{"--label", "row\x1b[2J", name, "--", "sleep", "120"})...))
		}
		eventually(t, "both commands hold", func() bool {
			queue := awaitQueue(t, watch, name, 2)
			return queue[0].Held && queue[1].Held && queue[0].Label == "row\x1b[2J" && queue[0].PID != queue[1].PID
		})
		again := slices.Concat([]string{"run", "--try"}, flags, []string{name, "--", "true"})
		if flags[0] == "--shared" {
			if code, _, _ := finish(t, url, nil, again...); code != 0 {
				t.Errorf("a third shared holder: %d, want 0", code)
			}
			again = []string{"run", "--try", name, "--", "true"}
		}
		if code, _, _ := finish(t, url, nil, again...); code != 75 {
			t.Errorf("%v: %d, want 75", again, code)
		}
		for _, p := range holders {
			p.signal(t, syscall.SIGTERM)
			if code := p.code(t); code != 128+15 {
				t.Errorf("after TERM: %d", code)
			}
		}
	}
}

// TestRunForwardsSignals: each of the six signals that zklock run forwards reaches the command
// once, and no other signal follows it. A command that ignores them keeps the lock.
func TestRunForwardsSignals(t *testing.T) {
	e := servers(t)
	watch, name := observer(t, e), newName(t)
	script := "for s in TERM INT HUP QUIT USR1 USR2; do trap \"echo $s\" $s; done; echo ready; while :; do sleep 0.01; done"
	p := start(t, urlOf(e.Hosts()), nil, "run", "--grace", "0s", name, "--", "bash", "-c", script)
	await := func(want string) {
		t.Helper()
		eventually(t, fmt.Sprintf("the command prints %q", want), func() bool { return p.stdout.String() == want })
	}
	want := "ready\n"
	await(want)
	for _, s := range []struct {
		name string
		sig  syscall.Signal
	}{{"TERM", syscall.SIGTERM}, {"INT", syscall.SIGINT}, {"HUP", syscall.SIGHUP}, {"QUIT", syscall.SIGQUIT}, {"USR1", syscall.SIGUSR1}, {"USR2", syscall.SIGUSR2}, {"TERM", syscall.SIGTERM}} {
		p.signal(t, s.sig)
		want += s.name + "\n"
		await(want)
	}
	if queue := awaitQueue(t, watch, name, 1); !queue[0].Held {
		t.Errorf("%+v", queue)
	}
	await(want)
}

// TestRunThatWaitsEndsBySignals: TERM, INT and HUP end the wait and leave nothing in the queue.
// The others do not.
func TestRunThatWaitsEndsBySignals(t *testing.T) {
	t.Parallel()
	e := servers(t)
	watch, name := observer(t, e), newName(t)
	lock, err := watch.Mutex(name).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		p := start(t, urlOf(e.Hosts()), nil, "run", name, "--", "echo", "never")
		awaitQueue(t, watch, name, 2)
		p.signal(t, syscall.SIGUSR1)
		p.signal(t, syscall.SIGQUIT)
		p.signal(t, sig)
		if code := p.code(t); code != 128+int(sig) || p.stdout.String() != "" {
			t.Errorf("%v: %d, %q", sig, code, p.stdout.String())
		}
		awaitQueue(t, watch, name, 1)
	}
	p := start(t, urlOf(e.Hosts()), nil, "run", name, "--", "echo", "at last")
	awaitQueue(t, watch, name, 2)
	p.signal(t, syscall.SIGUSR1)
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := p.code(t); code != 0 || p.stdout.String() != "at last\n" {
		t.Errorf("%d, %q", code, p.stdout.String())
	}
}

// TestRunLeavesIgnoredSignalsIgnored: under nohup, neither the wrapper nor the command gets HUP.
func TestRunLeavesIgnoredSignalsIgnored(t *testing.T) {
	e := servers(t)
	p := start(t, urlOf(e.Hosts()), nil, "run", newName(t), "--", "sh", "-c", "kill -HUP $$; echo lives; kill -PIPE $$")
	p.code(t)
	if got := p.cmd.ProcessState.ExitCode(); got != 128+1 || p.stdout.String() != "" {
		t.Errorf("without nohup: %d, %q, want the end by HUP", got, p.stdout.String())
	}
	n := prepared("sh", "-c", `trap "" HUP; exec "$@"`, "sh", binary(t), "run", newName(t), "--", "sh", "-c", "kill -HUP $$ $PPID; sleep 0.1; echo lives; kill -PIPE $$")
	n.cmd.Env = append(os.Environ(), "ZKLOCK_URL="+urlOf(e.Hosts()))
	n.begin(t)
	if code := n.code(t); code != 128+13 || n.stdout.String() != "lives\n" {
		t.Errorf("with HUP ignored: %d, %q, want that it lives until PIPE, which is not ignored", code, n.stdout.String())
	}
}
