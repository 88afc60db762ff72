//go:build linux

package command_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// soon is how long after the kill of a wrapper the next command starts at the latest, on a machine that is
// not busy. The session of the wrapper would expire after longTimeout.
const soon = 2 * time.Second

// TestKilledRunIsFollowedAtOnce kills a wrapper whose command ignores TERM and has children, again and
// again. The next command starts soon, and not before all processes of the killed one are dead. The
// next run waits already, or is started after the kill, as a supervisor does it. It has another session
// directory, so only the closer can have ended the session of the killed one.
func TestKilledRunIsFollowedAtOnce(t *testing.T) {
	t.Parallel()
	e := servers(t)
	watch := observer(t, e)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kills := long.Count(t, "ZKLOCK_KILLS", 4, 12)
	for _, verb := range []string{"run", "elect"} {
		t.Run(verb, func(t *testing.T) {
			var took []time.Duration
			dir, other := "XDG_RUNTIME_DIR="+t.TempDir(), "XDG_RUNTIME_DIR="+t.TempDir()
			for n := range kills {
				p := &pair{t: t, name: newName(t), file: filepath.Join(t.TempDir(), "log"), processes: 3}
				if err := os.WriteFile(p.file, nil, 0o666); err != nil {
					t.Fatal(err)
				}
				role := func(role, dir string) []string {
					return []string{dir, fileEnv + "=" + p.file, traitEnv + "=" + stubborn + parent + heirs, roleEnv + "=" + role}
				}
				next := func() { p.second = start(t, urlOf(e.Hosts()), role("second", other), "run", p.name, "--", self) }
				p.first = start(t, urlOf(e.Hosts()), role("first", dir), verb, p.name, "--", self)
				eventually(t, "the first command works", func() bool { return len(p.pids()) == p.processes })
				waits := n%2 == 0
				if waits {
					next()
					awaitQueue(t, watch, p.name, 2)
				}
				killed := time.Now()
				p.first.signal(t, syscall.SIGKILL)
				if !waits {
					next()
				}
				eventually(t, "the next command runs", func() bool { _, second := p.overlaps(); return second })
				took = append(took, time.Since(killed))
				p.judge(-1, false)
			}
			if left, err := filepath.Glob(strings.TrimPrefix(dir, "XDG_RUNTIME_DIR=") + "/*/*.session"); len(left) > 0 || err != nil {
				t.Errorf("the files %q of sessions are left, %v", left, err)
			}
			slices.Sort(took)
			late := 0
			for _, d := range took {
				if d > soon {
					late++
				}
			}
			t.Logf("%d kills: half of the next commands ran within %v, the slowest after %v; %d after more than %v", kills, took[len(took)/2], took[len(took)-1], late, soon)
			if late > 0 && os.Getenv("ZKLOCK_KILLS") != "" || took[len(took)-1] > longTimeout/3 {
				t.Errorf("%d of %d commands ran more than %v after the kill, the slowest after %v", late, kills, soon, took[len(took)-1])
			}
		})
	}
}

// TestCloserGoesWithoutServers: the closer of a run that is killed while the ensemble is away goes after a session
// timeout. It leaves the session's file, and the next reaper ends the session.
func TestCloserGoesWithoutServers(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Config{})
	dir := filepath.Join(t.TempDir(), "sessions")
	url := quickURL(e.Hosts()) + "&session_dir=" + dir
	p := start(t, url, nil, "run", newName(t), "--", "sh", "-c", "echo $$; sleep 1000")
	eventually(t, "the command runs", func() bool { return strings.HasSuffix(p.stdout.String(), "\n") })
	closer := childOf(p.cmd.Process.Pid, "lock-closer")
	began := startOf(closer)
	if closer == 0 || began == "" {
		t.Fatal("there is no closer")
	}
	e.Server(0).Kill()
	p.signal(t, syscall.SIGKILL)
	eventually(t, "the closer has gone", func() bool { return startOf(closer) != began })
	if left, err := filepath.Glob(dir + "/*.session"); len(left) != 1 || err != nil {
		t.Errorf("the files %q of sessions are left, %v; want one", left, err)
	}
	if err := e.Server(0).Start(); err != nil {
		t.Fatal(err)
	}
	if err := e.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	reap := start(t, url, nil, "reap", dir)
	code := reap.code(t)
	if left, err := filepath.Glob(dir + "/*.session"); len(left) > 0 || err != nil || code != 0 {
		t.Errorf("the files %q of sessions are left, %v; exit code %d: %s", left, err, code, reap.stderr.String())
	}
}

// TestPasswordOfASessionStaysInItsFile: neither the arguments nor the environment of the processes that a
// run consists of have the password of its session. Its command does not have the session's file open.
func TestPasswordOfASessionStaysInItsFile(t *testing.T) {
	t.Parallel()
	e := servers(t)
	dir := filepath.Join(t.TempDir(), "sessions")
	p := start(t, urlOf(e.Hosts())+"&session_dir="+dir, nil, "run", newName(t), "--", "sh", "-c", "echo $$; sleep 1000")
	eventually(t, "the command runs", func() bool { return strings.HasSuffix(p.stdout.String(), "\n") })
	files, err := filepath.Glob(dir + "/*.session")
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v; want the file of one session", files, err)
	}
	var record struct{ Password []byte }
	if text := lines(t, files[0]); len(text) < 2 || json.Unmarshal([]byte(text[1]), &record) != nil || len(record.Password) == 0 {
		t.Fatalf("the file has %d lines, and a password of %d bytes", len(text), len(record.Password))
	}
	wrapper := p.cmd.Process.Pid
	command := strings.TrimSpace(p.stdout.String())
	pids := []string{fmt.Sprint(wrapper), fmt.Sprint(childOf(wrapper, "lock-guard")), fmt.Sprint(childOf(wrapper, "lock-closer")), command}
	for _, pid := range pids {
		for _, name := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile("/proc/" + pid + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			for _, password := range []string{string(record.Password), hex.EncodeToString(record.Password), base64.StdEncoding.EncodeToString(record.Password)} {
				if bytes.Contains(text, []byte(password)) {
					t.Errorf("process %s of %q: the password is in its %s", pid, pids, name)
				}
			}
		}
		has, descriptors := false, "/proc/"+pid+"/fd/"
		entries, err := os.ReadDir(descriptors)
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range entries {
			target, _ := os.Readlink(descriptors + fd.Name())
			has = has || target == files[0]
		}
		if has != (pid != command) {
			t.Errorf("process %s of %q has the file of the session open: %v", pid, pids, has)
		}
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != 128+15 {
		t.Errorf("the run ended with %d", code)
	}
	if files, _ := filepath.Glob(dir + "/*.session"); len(files) != 0 {
		t.Errorf("%q are left", files)
	}
}

// TestRunWithoutASessionDirectory: the user's own directory is not usable. The run does without it, and says
// nothing. One that the URL names has to be usable.
func TestRunWithoutASessionDirectory(t *testing.T) {
	t.Parallel()
	e := servers(t)
	runtime := t.TempDir()
	dir := filepath.Join(runtime, fmt.Sprintf("zklock-%d", os.Getuid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	env := []string{"XDG_RUNTIME_DIR=" + runtime}
	p := start(t, urlOf(e.Hosts()), env, "run", newName(t), "--", "sh", "-c", "echo ready; sleep 1000")
	eventually(t, "the command runs", func() bool { return p.stdout.String() == "ready\n" })
	if guard, closer := childOf(p.cmd.Process.Pid, "lock-guard"), childOf(p.cmd.Process.Pid, "lock-closer"); guard == 0 || closer != 0 {
		t.Errorf("guard %d, closer %d; want a guard only", guard, closer)
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.code(t); code != 128+15 || p.stderr.String() != "" {
		t.Errorf("%d, %q", code, p.stderr.String())
	}
	if code, _, stderr := finish(t, urlOf(e.Hosts())+"&session_dir="+dir, env, "run", newName(t), "--", "true"); code != 78 || !strings.Contains(stderr, "0700") {
		t.Errorf("with session_dir: %d, %q", code, stderr)
	}
}

// TestReapFreesTheQueue: a run that waits is killed, and has no command and so no guard. Its contender
// goes when zklock reap looks at its directory, once or all the time.
func TestReapFreesTheQueue(t *testing.T) {
	t.Parallel()
	e := servers(t)
	watch := observer(t, e)
	name, dir := newName(t), filepath.Join(t.TempDir(), "sessions")
	holder := start(t, urlOf(e.Hosts()), nil, "run", name, "--", "sh", "-c", "echo ready; sleep 1000")
	eventually(t, "a lock is held", func() bool { return holder.stdout.String() == "ready\n" })
	kill := func() {
		t.Helper()
		waiter := start(t, urlOf(e.Hosts())+"&session_dir="+dir, nil, "run", name, "--", "true")
		awaitQueue(t, watch, name, 2)
		waiter.signal(t, syscall.SIGKILL)
		waiter.code(t)
	}
	kill()
	if queue := awaitQueue(t, watch, name, 2); queue[1].Held {
		t.Errorf("%+v", queue)
	}
	if code, out, stderr := finish(t, "", nil, "reap", dir); code != 0 || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "ended the session of a dead process") {
		t.Errorf("%d, %q, %q; want one line about a session", code, out, stderr)
	}
	awaitQueue(t, watch, name, 1)
	if code, out, stderr := finish(t, "", nil, "reap", dir); code != 0 || out+stderr != "" {
		t.Errorf("without sessions: %d, %q, %q", code, out, stderr)
	}
	sidecar := start(t, "", nil, "reap", "--wait", dir)
	for n := range 2 {
		kill()
		awaitQueue(t, watch, name, 1)
		eventually(t, "there is a line about it", func() bool { return strings.Count(sidecar.stderr.String(), "\n") == n+1 })
	}
	sidecar.signal(t, syscall.SIGTERM)
	if code := sidecar.code(t); code != 0 {
		t.Errorf("TERM ended it with %d: %s", code, sidecar.stderr.String())
	}
	holder.signal(t, syscall.SIGTERM)
	holder.code(t)
}
