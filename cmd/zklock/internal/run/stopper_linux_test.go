package run

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

// halfStopped has a process that TSTP does not stop, and another one, the first, that it stops.
const halfStopped = `exec 3>"$1"; sh -c 'trap "" TSTP; sleep 30' & wait`

// TestWrapperThatStopsStopsItsCommand: the key that stops a job reaches the wrapper alone if standard
// input is not a terminal. All processes of the command are stopped while the wrapper is, and the
// guard is not.
func TestWrapperThatStopsStopsItsCommand(t *testing.T) {
	command := newWitness(t)
	w := wrapper(t, halfStopped, command.path)
	w.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the test can continue it, as a shell can
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.Process.Kill()
		_ = w.Wait()
	})
	command.lives()
	group := commandOf(t, w.Process.Pid)
	become(t, group, "SSS")
	for range 2 {
		signalTo(t, w.Process.Pid, syscall.SIGTSTP)
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(w.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || status.StopSignal() != syscall.SIGTSTP {
			t.Fatalf("the wrapper: %#x, %v; want that TSTP stops it", status, err)
		}
		become(t, group, "TTT")
		eventually(t, "the guard is not", func() bool {
			state, _, _ := processState(fmt.Sprintf("/proc/%d/stat", group))
			return state == 'S'
		})
		signalTo(t, w.Process.Pid, syscall.SIGCONT)
		become(t, group, "SSS")
	}
	signalTo(t, w.Process.Pid, syscall.SIGTERM)
	command.dies()
}

// TestKeyStopsTheWholeGroup: the key for it stops the command's first process, and another one of the
// group ignores it.
func TestKeyStopsTheWholeGroup(t *testing.T) {
	command := newWitness(t)
	w := wrapper(t, halfStopped, command.path)
	keys, screen := newTerminal(t)
	sh := exec.Command("bash", append([]string{"--norc", "-c", `set -m; "$0" "$@"; read line; fg`}, w.Args...)...)
	sh.Stdin, sh.Stdout, sh.Stderr = screen, screen, screen // or bash does not make the job the foreground group
	sh.Env, sh.SysProcAttr = w.Env, &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := sh.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sh.Process.Kill()
		_ = sh.Wait()
	})
	command.lives()
	group := commandOf(t, childrenOf(t, sh.Process.Pid)[0].pid)
	become(t, group, "SSS")
	press(t, keys, "\x1a")
	become(t, group, "TTT")
	press(t, keys, "\n") // fg
	become(t, group, "SSS")
	press(t, keys, "\x03")
	command.dies()
}

// become waits until the processes of a command's group have these states. Before halfStopped
// gets a signal, all three must wait (SSS). A shell that is still starting its child may be in
// a vfork, whose state is D, and stays there while the child is stopped.
func become(t *testing.T, group int, want string) {
	t.Helper()
	got := ""
	defer func() {
		if got != want {
			t.Logf("the processes of the group have the states %q, want %q", got, want)
		}
	}()
	eventually(t, "the command is stopped (TTT), or goes on (SSS)", func() bool {
		got = states(t, group)
		return got == want
	})
}

func signalTo(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

func press(t *testing.T, keys *os.File, key string) {
	t.Helper()
	if _, err := keys.WriteString(key); err != nil {
		t.Fatal(err)
	}
}

// newTerminal returns both ends of a terminal. What programs print on it is not read.
func newTerminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	var locked, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &locked, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, keys.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Fatal(errno)
		}
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	return keys, screen
}
