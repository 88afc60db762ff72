package run

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// testify is what the closers of these tests do in place of ending sessions: they write into the file
// how many processes of the group are alive, once there is no file with the suffix .hold.
func testify(files []*os.File) {
	group, _ := strconv.Atoi(os.Args[1])
	procs, _ := filepath.Glob("/proc/[0-9]*/stat")
	live := 0
	for _, path := range procs {
		if state, of, ok := processState(path); ok && of == group && !isDead(state) {
			live++
		}
	}
	for _, f := range files {
		path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		for begin := time.Now(); time.Since(begin) < 2*patience; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(path + ".hold"); err != nil {
				break
			}
		}
		fmt.Fprintf(f, "ended with %d processes\n", live)
	}
}

// sessionFile returns the file of a session, with its flock: the closer says in it that it has ended
// the session.
func sessionFile(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "session"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	return f
}

func contentOf(t *testing.T, f *os.File) string {
	t.Helper()
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// isLocked reports whether a process has the flock of a file.
func isLocked(t *testing.T, f *os.File) bool {
	t.Helper()
	another, err := os.Open(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	err = syscall.Flock(int(another.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil && err != syscall.EWOULDBLOCK {
		t.Fatal(err)
	}
	return err != nil
}

// startWithSession starts a wrapper that has the file of a session. This process has it no longer.
func startWithSession(t *testing.T, session *os.File, script string, args ...string) *exec.Cmd {
	t.Helper()
	w := wrapper(t, script, args...)
	w.Env = append(w.Env, sessionEnv+"=1")
	w.ExtraFiles = []*os.File{session}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	_ = session.Close()
	return w
}

// die kills a wrapper.
func die(t *testing.T, w *exec.Cmd) {
	t.Helper()
	if err := w.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = w.Wait()
}

// TestCloserEndsTheSessionsOfADeadGroup: the wrapper is killed. Its session is ended when all processes
// of the command are dead, and its file is locked until then.
func TestCloserEndsTheSessionsOfADeadGroup(t *testing.T) {
	command, session := newWitness(t), sessionFile(t)
	hold := session.Name() + ".hold"
	if err := os.WriteFile(hold, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	// A process with much memory needs a moment to die: tail keeps the line that it has not read to its end.
	w := startWithSession(t, session, `trap "" TERM; { head -c 200m /dev/zero; exec 3>"$1"; sleep 90; } | tail`, command.path)
	command.lives()
	die(t, w)
	command.dies()
	if !isLocked(t, session) {
		t.Error("the file is free before the session has ended")
	}
	if text := contentOf(t, session); text != "" {
		t.Errorf("the file has %q", text)
	}
	_ = os.Remove(hold)
	eventually(t, "the session is ended", func() bool { return contentOf(t, session) != "" })
	if text := contentOf(t, session); text != "ended with 0 processes\n" {
		t.Errorf("the session was %q", text)
	}
	eventually(t, "the file is free", func() bool { return !isLocked(t, session) })
}

// TestGroupIsDesertedWhenAllAreDead: a group has a member while a process of it is stopped, and none once
// that is dead, even if its parent has not collected it.
func TestGroupIsDesertedWhenAllAreDead(t *testing.T) {
	c := shell("exec sleep 90")
	group, err := syscall.ForkExec(c.Path, c.Args, &syscall.ProcAttr{Env: os.Environ(), Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		sig      syscall.Signal
		deserted bool
	}{{0, false}, {syscall.SIGSTOP, false}, {syscall.SIGKILL, true}} {
		if err := syscall.Kill(group, s.sig); err != nil {
			t.Fatal(err)
		}
		if s.sig != 0 {
			if _, err := waitid(oneChild, group, syscall.WEXITED|syscall.WSTOPPED); err != nil {
				t.Fatal(err)
			}
		}
		if got := isDeserted(group); got != s.deserted {
			t.Errorf("after %v: deserted %v, want %v", s.sig, got, s.deserted)
		}
	}
	if pid, _ := collect(group); pid != group || !isDeserted(group) {
		t.Errorf("%d was collected, want %d; deserted %v", pid, group, isDeserted(group))
	}
}

// TestCloserKillsAGroupWithoutAGuard: the guard is killed, and the wrapper before the next guard works.
func TestCloserKillsAGroupWithoutAGuard(t *testing.T) {
	command, session := newWitness(t), sessionFile(t)
	w := startWithSession(t, session, stubborn, command.path)
	command.lives()
	slow := slowGuardsOf(t, w.Process.Pid)
	if err := syscall.Kill(commandOf(t, w.Process.Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	slow.await()
	die(t, w)
	command.dies() // before the guard works
	eventually(t, "the session is ended", func() bool { return contentOf(t, session) == "ended with 0 processes\n" })
}

// TestCloserIsReplaced: if a closer is killed, another one is started. At the end none is left, and
// none has ended a session.
func TestCloserIsReplaced(t *testing.T) {
	command, session := newWitness(t), sessionFile(t)
	w := begin(t, short, shell(sleeper, command.path), session)
	command.lives()
	guard, old := w.guard(), []int(nil)
	for n := range 3 {
		closer := childOf(t, os.Getpid(), closerName, old...)
		if of, err := syscall.Getpgid(closer); err != nil || of == guard || of == syscall.Getpgrp() {
			t.Errorf("closer %d is in group %d, %v; want one of its own", n, of, err)
		}
		old = append(old, closer)
		if err := syscall.Kill(closer, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the wrapper reports it", func() bool { return strings.Count(w.said.all(), "there is a new one") == n+1 })
	}
	close(w.revoked)
	if got := w.end(); got.Lost || got.Status.Signal() != syscall.SIGTERM || contentOf(t, session) != "" {
		t.Errorf("%+v, and the file has %q; want the end by TERM", got, contentOf(t, session))
	}
	if !isLocked(t, session) {
		t.Error("Run has given the file back")
	}
}

// TestHelpersInheritNoOtherFile: the wrapper was started with a second open file, besides its session's. The
// command has that file, and the guard and the closer do not: they may outlive the command.
func TestHelpersInheritNoOtherFile(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "inherited"))
	if err != nil {
		t.Fatal(err)
	}
	w := wrapper(t, `readlink /proc/$$/fd/11; sleep 90`)
	w.Env = append(w.Env, sessionEnv+"=1")
	w.ExtraFiles = []*os.File{sessionFile(t), 8: file} // 11 is above the helpers' own descriptors
	said, err := w.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	if name, err := bufio.NewReader(said).ReadString('\n'); name != file.Name()+"\n" {
		t.Errorf("the command has %q, %v; want %s", name, err, file.Name())
	}
	for _, helper := range []string{guardName, closerName} {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", childOf(t, w.Process.Pid, helper)))
		if len(links) < guardWrapper+2 {
			t.Errorf("the %s has the descriptors %q", helper, links)
		}
		for _, link := range links {
			if name, _ := os.Readlink(link); name == file.Name() {
				t.Errorf("the %s has the file too, as %s", helper, link)
			}
		}
	}
	die(t, w)
}

// TestFileAboveTheLimit: the wrapper was started with an open file above its limit of descriptors. It runs
// the command.
func TestFileAboveTheLimit(t *testing.T) {
	file := sessionFile(t)
	w := wrapper(t, `readlink /proc/$$/fd/80`)
	w.Path, w.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -n 64; exec "$0" "$@"`}, w.Args...)
	w.ExtraFiles = []*os.File{77: file}
	if out, err := w.Output(); err != nil || string(out) != file.Name()+"\n" {
		t.Errorf("the command has %q, %v; want %s", out, err, file.Name())
	}
}

// TestGuardsHaveTheFiles: the wrapper and its closer are killed while a guard that takes the place of
// the first one does not work yet. The file is locked as long as that guard is there.
func TestGuardsHaveTheFiles(t *testing.T) {
	command, session := newWitness(t), sessionFile(t)
	w := startWithSession(t, session, stubborn, command.path)
	command.lives()
	slow := slowGuardsOf(t, w.Process.Pid)
	if err := syscall.Kill(commandOf(t, w.Process.Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	slow.await()
	// A wrapper that is stopped starts no other closer.
	if err := syscall.Kill(w.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(childOf(t, w.Process.Pid, closerName), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	die(t, w)
	if !isLocked(t, session) || !command.alive() {
		t.Errorf("locked %v, the command is alive %v; want both", isLocked(t, session), command.alive())
	}
	slow.release()
	command.dies()
	eventually(t, "the file is free", func() bool { return !isLocked(t, session) })
	if text := contentOf(t, session); text != "" {
		t.Errorf("the file has %q", text)
	}
}

// TestCloserHasTheFilesOfTheEnvironment: a closer has the variables that name the files of TLS and Kerberos,
// and finds the files from any folder.
func TestCloserHasTheFilesOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	w := wrapper(t, "sleep 90")
	w.Dir = dir
	w.ExtraFiles = []*os.File{sessionFile(t)}
	w.Env = append(w.Env, sessionEnv+"=1", "SSL_CERT_FILE=ca.pem", "SSL_CERT_DIR=/certs:more", "KRB5_CONFIG=krb5.conf::/etc/krb5.conf",
		"KRB5_CLIENT_KTNAME=FILE:shop.keytab", "KRB5CCNAME=")
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	closer := childOf(t, w.Process.Pid, closerName)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", closer))
	die(t, w)
	if err != nil {
		t.Fatal(err)
	}
	env := strings.Split(string(text), "\x00")
	for _, want := range []string{"SSL_CERT_FILE=DIR/ca.pem", "SSL_CERT_DIR=/certs:DIR/more", "KRB5_CONFIG=DIR/krb5.conf::/etc/krb5.conf",
		"KRB5_CLIENT_KTNAME=DIR/shop.keytab", "KRB5CCNAME="} {
		if want = strings.ReplaceAll(want, "DIR/", dir+"/"); !slices.Contains(env, want) {
			t.Errorf("the closer has %q, want %s too", env, want)
		}
	}
}
