//go:build linux

package command_test

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// TestWatchFollowsAQueue: a line for each arrival, grant and departure, as text and as JSON. TERM
// ends it.
func TestWatchFollowsAQueue(t *testing.T) {
	t.Parallel()
	e := servers(t)
	c, name := observer(t, e), newName(t)
	other := observer(t, e)
	first, err := c.Mutex(name).Acquire(t.Context(), zklock.WithLabel("first\n"))
	if err != nil {
		t.Fatal(err)
	}
	text := start(t, urlOf(e.Hosts()), nil, "watch", name)
	asJSON := start(t, urlOf(e.Hosts()), nil, "watch", "-o", "json", name)
	await := func(n int) {
		t.Helper()
		for _, p := range []*process{text, asJSON} {
			eventually(t, "the watch prints the events", func() bool { return strings.Count(p.stdout.String(), "\n") == n })
		}
	}
	await(1)
	acquired := make(chan *zklock.Lock)
	go func() {
		l, err := other.Mutex(name).Acquire(t.Context())
		if err != nil {
			t.Error(err)
		}
		acquired <- l
	}()
	await(2)
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := <-acquired
	await(4)
	if err := second.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(5)
	want := []string{"present", "arrived", "left", "granted", "left"}
	for i, line := range strings.Split(strings.TrimSpace(text.stdout.String()), "\n") {
		if f := strings.Fields(line); f[1] != want[i] || i == 0 && !strings.Contains(line, `first\n`) {
			t.Errorf("line %d: %s, want %s", i, line, want[i])
		}
	}
	for i, line := range strings.Split(strings.TrimSpace(asJSON.stdout.String()), "\n") {
		var event struct {
			Event     string
			Contender struct{ Held bool }
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil || event.Event != want[i] || event.Contender.Held == (want[i] == "arrived") {
			t.Errorf("line %d: %v, %s, want %s", i, err, line, want[i])
		}
	}
	for _, p := range []*process{text, asJSON} {
		p.signal(t, syscall.SIGTERM)
		if code := p.code(t); code != 0 || p.stderr.String() != "" {
			t.Errorf("%d, %s", code, p.stderr.String())
		}
	}
}

// TestChangeShowsInATerminal: another label of a holder, in top and in watch.
func TestChangeShowsInATerminal(t *testing.T) {
	t.Parallel()
	e := servers(t)
	c, name := observer(t, e), "live" // short: top cuts its lines at the width of the screen
	l, err := c.Mutex(name).Acquire(t.Context(), zklock.WithLabel("row 1"))
	if err != nil {
		t.Fatal(err)
	}
	top := onTerminal(t, urlOf(e.Hosts()), binary(t), "top", name)
	watch := onTerminal(t, urlOf(e.Hosts()), binary(t), "watch", name)
	top.shows(t, "row 1")
	watch.shows(t, "row 1")
	for n := range 5 {
		label := fmt.Sprintf("row %d", n+2)
		began := time.Now()
		if err := l.SetLabel(t.Context(), label); err != nil {
			t.Fatal(err)
		}
		watch.shows(t, label)
		took := time.Since(began)
		top.shows(t, label)
		t.Logf("watch shows the change after %v, top after %v", took.Round(ms), time.Since(began).Round(ms))
	}
	if text := watch.screen.String(); strings.Count(text, "  changed  ") != 5 {
		t.Errorf("watch shows %q, want five changes", text)
	}
	top.press(t, "q")
	watch.press(t, ctrlC)
	for _, p := range []*terminal{top, watch} {
		if code := p.code(t); code != 0 {
			t.Errorf("%v: %d", p.cmd.Args, code)
		}
	}
}

// TestTopSaysThatItConnectsInATerminal: no server answers, and the screen is not empty.
func TestTopSaysThatItConnectsInATerminal(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := urlOf(closed.Addr().String())
	closed.Close()
	top := onTerminal(t, url, binary(t), "top")
	top.shows(t, "connecting to the ensemble")
	top.press(t, "q")
	if code := top.code(t); code != 0 {
		t.Errorf("code %d", code)
	}
}

// TestTopShowsTheNamesAndLeavesTheTerminal: q, Ctrl-C and TERM end it, and the terminal has the
// modes that it had before.
func TestTopShowsTheNamesAndLeavesTheTerminal(t *testing.T) {
	t.Parallel()
	e := servers(t)
	c := observer(t, e)
	if _, err := c.Mutex("top/held").Acquire(t.Context(), zklock.WithLabel("row 1")); err != nil {
		t.Fatal(err)
	}
	for what, end := range map[string]func(*terminal){
		"q":      func(term *terminal) { term.press(t, "xq") },
		"Ctrl-C": func(term *terminal) { term.press(t, ctrlC) },
		"TERM": func(term *terminal) {
			for _, line := range strings.Split(term.screen.String(), "\n") {
				if f := strings.Fields(line); len(f) == 2 && f[0] == "pid" {
					term.signalTo(t, f[1], syscall.SIGTERM)
				}
			}
		},
	} {
		term := onTerminal(t, urlOf(e.Hosts()), "bash", "--norc", "-c", `
			before=$(stty -g)
			"$ZKLOCK" top --every 200ms top/ < /dev/tty & # in the same group, so in the foreground
			echo "pid $!"
			wait $!
			echo "code $?"
			[ "$before" = "$(stty -g)" ] && echo "the terminal is as it was"`)
		term.shows(t, "top/held")
		term.shows(t, "row 1")
		end(term)
		term.shows(t, "the terminal is as it was")
		term.code(t)
		screen := term.screen.String()
		if !strings.Contains(screen, "code 0") || strings.Count(screen, "\x1b[?1049h") != 1 || strings.Count(screen, "\x1b[?1049l") != 1 {
			t.Errorf("%s: %q", what, screen)
		}
	}
	if code, _, stderr := finish(t, urlOf(e.Hosts()), nil, "top"); code != 64 || !strings.Contains(stderr, "terminal") {
		t.Errorf("without a terminal: %d, %s", code, stderr)
	}
}
