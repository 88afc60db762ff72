//go:build linux

package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// multiplexer is a tmux with one script. It shows what a person sees on the screen of a terminal.
type multiplexer struct {
	t      *testing.T
	socket string
}

// newMultiplexer starts a tmux, or skips the test if there is none.
func newMultiplexer(t *testing.T, url, script string) *multiplexer {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil && os.Getenv(ensemble.RequiredEnv) == "1" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip(err)
	}
	m := &multiplexer{t, filepath.Join(t.TempDir(), "socket")}
	m.do("-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "12", "-e", "ZKLOCK_URL="+url, "-e", "ZKLOCK="+binary(t), "sh", "-c", script)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", m.screen())
		}
		_ = exec.Command("tmux", "-S", m.socket, "kill-server").Run() // it may have ended with its script
		eventually(t, "tmux ends", func() bool { return exec.Command("tmux", "-S", m.socket, "has-session").Run() != nil })
	})
	return m
}

// do runs a command of tmux, and returns what it prints.
func (m *multiplexer) do(args ...string) string {
	m.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", m.socket}, args...)...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// press presses keys, which tmux names.
func (m *multiplexer) press(keys ...string) {
	m.t.Helper()
	m.do(append([]string{"send-keys"}, keys...)...)
}

// screen returns the screen, a line of the program a line.
func (m *multiplexer) screen() string {
	m.t.Helper()
	return strings.TrimRight(m.do("capture-pane", "-p", "-J"), "\n ")
}

// shows waits until the screen has some texts, and lacks one. It returns the screen.
func (m *multiplexer) shows(without string, texts ...string) (screen string) {
	m.t.Helper()
	eventually(m.t, fmt.Sprintf("the screen shows %q without %q", texts, without), func() bool {
		screen = m.screen()
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return false
			}
		}
		return without == "" || !strings.Contains(screen, without)
	})
	return screen
}

// TestTmuxShowsTop: a change replaces what was there, and at the end the screen is as it was.
func TestTmuxShowsTop(t *testing.T) {
	t.Parallel()
	e := servers(t)
	c, name := observer(t, e), "tmux-top"
	l, err := c.Mutex(name).Acquire(t.Context(), zklock.WithLabel("row 1"))
	if err != nil {
		t.Fatal(err)
	}
	m := newMultiplexer(t, urlOf(e.Hosts()), `echo before; "$ZKLOCK" top `+name+`; echo "ended with $?"; read end`)
	m.shows("", "1 name in use", "NAME", name, "row 1", "q ends")
	for n := 2; n < 7; n++ {
		began, label := time.Now(), fmt.Sprintf("row %d", n)
		if err := l.SetLabel(t.Context(), label); err != nil {
			t.Fatal(err)
		}
		screen := m.shows(fmt.Sprintf("row %d", n-1), "1 name in use, 0 waiting processes", label)
		t.Logf("the change shows after %v", time.Since(began).Round(ms))
		if n == 6 {
			t.Logf("the screen:\n%s", screen)
		}
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.shows("row 6", "0 names in use, 0 waiting processes")
	m.press("q")
	m.shows("names in use", "before\nended with 0")
}

// TestTmuxShowsWatch: each event is one line more.
func TestTmuxShowsWatch(t *testing.T) {
	t.Parallel()
	e := servers(t)
	c, name := observer(t, e), "tmux-watch"
	l, err := c.Mutex(name).Acquire(t.Context(), zklock.WithLabel("row 1"))
	if err != nil {
		t.Fatal(err)
	}
	m := newMultiplexer(t, urlOf(e.Hosts()), `trap : INT; "$ZKLOCK" watch `+name+`; echo "ended with $?"; read end`)
	m.shows("", "present", "row 1")
	for n := 2; n < 4; n++ {
		began, label := time.Now(), fmt.Sprintf("row %d", n)
		if err := l.SetLabel(t.Context(), label); err != nil {
			t.Fatal(err)
		}
		m.shows("", "changed", "row 1", label)
		t.Logf("the change shows after %v", time.Since(began).Round(ms))
	}
	began := time.Now()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	screen := m.shows("", "left")
	t.Logf("the release shows after %v; the screen:\n%s", time.Since(began).Round(ms), screen)
	m.press("C-c")
	m.shows("", "ended with 0")
}
