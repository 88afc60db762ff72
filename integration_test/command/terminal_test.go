//go:build linux

package command_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a terminal whose keys the test presses, and whose screen it reads.
type terminal struct {
	*process
	master *os.File
	screen buffer
}

// onTerminal starts a program as the leader of a session with a terminal.
func onTerminal(t *testing.T, url string, command ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	term := &terminal{process: prepared(command[0], command[1:]...), master: master}
	term.cmd.Env = append(os.Environ(), "ZKLOCK_URL="+url, "ZKLOCK="+binary(t), "LOCK="+newName(t), "PS1=", "TERM=dumb")
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	term.begin(t)
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			_, _ = term.screen.Write(b[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = term.cmd.Process.Kill()
		<-term.done
		master.Close()
		<-read
		if t.Failed() {
			t.Logf("the screen: %q", term.screen.String())
		}
	})
	return term
}

// press presses keys.
func (term *terminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := term.master.Write([]byte(keys)); err != nil {
		t.Fatal(err)
	}
}

// shows waits until the screen shows a text.
func (term *terminal) shows(t *testing.T, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the screen shows %q", text), func() bool { return strings.Contains(term.screen.String(), text) })
}

// signalTo sends a signal to a process.
func (term *terminal) signalTo(t *testing.T, pid string, sig syscall.Signal) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(n, sig); err != nil {
		t.Error(err)
	}
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

// TestTerminalBelongsToTheCommand: while the command runs, its group is in the foreground, so it
// reads keys, and gets the signals of the terminal. When it has ended, the wrapper's group is in
// the foreground again. The command of this test waits in a read: dash loses a signal that arrives
// right before it executes another program.
func TestTerminalBelongsToTheCommand(t *testing.T) {
	e := servers(t)
	term := onTerminal(t, urlOf(e.Hosts()), "sh", "-c", `
		"$ZKLOCK" run "$LOCK" -- sh -c 'echo groups $(ps -o pgid=,tpgid= -p $$); read line; echo "command: $line"; read never'
		echo "code $?"
		read line; echo "shell: $line"`)
	term.shows(t, "groups")
	term.press(t, "one\n")
	term.shows(t, "command: one")
	term.press(t, ctrlC)
	term.shows(t, "code 130")
	term.press(t, "two\n")
	term.shows(t, "shell: two")
	term.code(t)
	for line := range strings.Lines(term.screen.String()) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "groups" && (len(f) != 3 || f[1] != f[2]) {
			t.Errorf("%q, want that the command's group is in the foreground", line)
		}
	}
}

// jobOfFG is the line that fg of bash prints. A key that is pressed before may show in front of it.
const jobOfFG = `"$ZKLOCK" run "$LOCK" -- cat` + "\r\n"

// TestTerminalStopsTheJob: when the key that stops a job is pressed, the shell gets the terminal.
// The job can go on later, in the foreground.
func TestTerminalStopsTheJob(t *testing.T) {
	e := servers(t)
	term := onTerminal(t, urlOf(e.Hosts()), "bash", "--norc", "-c", `
		set -m
		"$ZKLOCK" run "$LOCK" -- cat
		echo "stopped with $?"
		read line; echo "shell: $line"
		fg
		echo "code $?"`)
	term.press(t, "one\n")
	term.shows(t, "one\r\none\r\n")
	term.press(t, ctrlZ)
	term.shows(t, "zklock: stopped: the lock goes to others from ")
	term.shows(t, "stopped with 148") // 128 and the number of TSTP
	term.press(t, "two\n")
	term.shows(t, "shell: two\r\n"+jobOfFG)
	term.press(t, "three\n")
	term.shows(t, "three\r\nthree\r\n")
	term.press(t, ctrlC)
	term.shows(t, "code 130")
	term.code(t)
}

// TestTerminalWithoutAShell: no shell could let a stopped job go on, so the command goes on by
// itself.
func TestTerminalWithoutAShell(t *testing.T) {
	e := servers(t)
	term := onTerminal(t, urlOf(e.Hosts()), binary(t), "run", "terminal/alone", "--", "cat")
	term.press(t, "one\n")
	term.shows(t, "one\r\none\r\n")
	term.press(t, ctrlZ+"two\n")
	term.shows(t, "is killed\r\n")
	term.shows(t, "two\r\n") // of cat; that of the terminal may be in front of the message
	term.press(t, ctrlC)
	if code := term.code(t); code != 130 {
		t.Errorf("code %d", code)
	}
}

// TestTerminalIsGivenToAJobThatComesForward: a job in the background has no terminal. When the
// command reads, the job is stopped, and gets the terminal with fg.
func TestTerminalIsGivenToAJobThatComesForward(t *testing.T) {
	e := servers(t)
	term := onTerminal(t, urlOf(e.Hosts()), "bash", "--norc", "-c", `
		set -m
		"$ZKLOCK" run "$LOCK" -- cat &
		while ! jobs | grep -q Stopped; do sleep 0.1; done
		read line; echo "shell: $line"
		fg
		echo "code $?"`)
	term.press(t, "one\n")
	term.shows(t, "shell: one\r\n"+jobOfFG)
	term.press(t, "two\n")
	term.shows(t, "two\r\ntwo\r\n")
	term.press(t, ctrlC)
	term.shows(t, "code 130")
	term.code(t)
}

// TestTerminalStopsTheJobForLong: the lock of a job that is stopped for longer than its session
// goes to another client. When the job goes on, the command is killed before it can do anything.
// The command is a bash: a dash whose child the key stops between vfork and exec does not stop itself.
func TestTerminalStopsTheJobForLong(t *testing.T) {
	t.Parallel()
	e := servers(t)
	term := onTerminal(t, quickURL(e.Hosts()), "bash", "--norc", "-c", `
		set -m
		"$ZKLOCK" run "$LOCK" -- bash -c 'echo begun; while :; do sleep 0.01; n=$((n+1)); [ $n = 1000000 ] && echo never; done'
		echo "stopped with $?"
		"$ZKLOCK" run "$LOCK" -- echo "another one"
		fg
		echo "code $?"`)
	term.shows(t, "begun")
	term.press(t, ctrlZ)
	term.shows(t, "stopped with 148")
	term.shows(t, "another one")
	term.shows(t, "code 76")
	term.code(t)
}
