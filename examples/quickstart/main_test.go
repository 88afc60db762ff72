package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// programEnv makes the test binary run the program instead, so that tests can see its exit
// status: "whole", or "broken" for a program with a lock that does not exclude.
const programEnv = "QUICKSTART_TEST_PROGRAM"

func TestMain(m *testing.M) {
	switch os.Getenv(programEnv) {
	case "whole":
		main()
	case "broken":
		os.Exit(status(demonstrateBroken()))
	}
	os.Exit(m.Run())
}

// demonstrateBroken gives each acquisition a lock of its own.
func demonstrateBroken() error {
	client, err := zklock.Open("mem://")
	if err != nil {
		return err
	}
	defer client.Close()
	var asked atomic.Int32
	oneEach := func(name string) *zklock.Mutex {
		return client.Mutex(fmt.Sprintf("%s/%d", name, asked.Add(1)))
	}
	return demonstrate(context.Background(), oneEach, os.Stdout)
}

func TestPlainOnMem(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-plain"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		"ok      50 contenders, each with a Mutex value of its own: at most 1 at once, counter 50\n",
		"ok      50 contenders, all with the same Mutex value: at most 1 at once, counter 50\n",
		"ok      60 HTTP requests: at most 1 at once per account, ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the summary lacks %q", want)
		}
	}
	if strings.Contains(out.String(), " 1 over all accounts") {
		t.Error("requests for different accounts waited for one another")
	}
	if t.Failed() {
		t.Logf("%s", &out)
	}
}

// TestRunStops interrupts the program as soon as it has written for the first time.
func TestRunStops(t *testing.T) {
	for _, args := range [][]string{nil, {"-plain"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) { testRunStops(t, args) })
	}
}

func testRunStops(t *testing.T, args []string) {
	interrupted := errors.New("interrupted")
	ctx, interrupt := context.WithCancelCause(t.Context())
	var out bytes.Buffer
	err := run(ctx, args, writerFunc(func(p []byte) (int, error) {
		interrupt(interrupted)
		return out.Write(p)
	}))
	if !errors.Is(err, interrupted) {
		t.Errorf("run = %v, want the cause of the interruption", err)
	}
	if strings.Contains(out.String(), "Summary") || strings.Contains(out.String(), "ok:") {
		t.Errorf("a summary of what was not done:\n%s", &out)
	}
}

// TestInterruptionExplainsAFailure: an interruption ends the replicas too, so an answer that says so may
// be there already.
func TestInterruptionExplainsAFailure(t *testing.T) {
	interrupted := errors.New("interrupted")
	ctx, interrupt := context.WithCancelCause(t.Context())
	interrupt(interrupted)
	for range 100 { // answer chooses at random
		m := member{answers: make(chan string, 1)}
		m.answers <- failed + "its context has ended"
		if _, err := m.answer(ctx); !errors.Is(err, interrupted) {
			t.Fatalf("answer = %v, want the cause of the interruption", err)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestExitStatus(t *testing.T) {
	for _, test := range []struct {
		program string
		args    []string
		status  int
		want    []string // on standard output or standard error
	}{
		{"whole", []string{"-plain"}, 0, []string{"Summary"}},
		{"whole", []string{"-help"}, 0, []string{"-url"}},
		{"whole", []string{"-url", "nothing://"}, 1, []string{`"nothing"`}},
		{"whole", []string{"-url"}, 1, nil},
		{"whole", []string{"more"}, 1, []string{`"more"`}},
		{"broken", nil, 1, []string{
			"FAILED  50 contenders, each with a Mutex value of its own: ",
			"FAILED  60 HTTP requests: ",
			"exclusion is broken",
			"updates were lost",
			"account anna: exclusion is broken",
		}},
	} {
		t.Run(test.program+" "+strings.Join(test.args, " "), func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], test.args...)
			// Without a lock the access to the counter is a data race, on purpose.
			// The race detector's report must not change the exit status.
			cmd.Env = append(os.Environ(), programEnv+"="+test.program, "GORACE=exitcode=0")
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if got := cmd.ProcessState.ExitCode(); got != test.status {
				t.Errorf("exit status %d, want %d", got, test.status)
			}
			for _, want := range test.want {
				if !bytes.Contains(out, []byte(want)) {
					t.Errorf("no %q in the output", want)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	begin := time.Now()
	stay := func(zxid int64, start, end int) hold {
		return hold{
			token: zklock.Token{Zxid: zxid},
			start: begin.Add(time.Duration(start) * time.Millisecond),
			end:   begin.Add(time.Duration(end) * time.Millisecond),
		}
	}
	for _, test := range []struct {
		name  string
		holds []hold
		want  string // "" for no error
	}{
		{"no holds", nil, ""},
		{"one after another", []hold{stay(1, 0, 2), stay(2, 2, 4), stay(5, 6, 7)}, ""},
		{"two overlap", []hold{stay(1, 0, 2), stay(2, 1, 4)}, "2 held the lock at once"},
		{"one inside another", []hold{stay(1, 0, 9), stay(2, 2, 3), stay(3, 4, 5)}, "2 held the lock at once"},
		{"token goes back", []hold{stay(2, 0, 1), stay(1, 2, 3)}, "tokens do not increase"},
		{"token stays", []hold{stay(2, 0, 1), stay(2, 2, 3)}, "tokens do not increase"},
	} {
		err := check(test.holds)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

func TestTimeline(t *testing.T) {
	begin := time.Now()
	at := func(column int) time.Time { return begin.Add(time.Duration(column) * time.Millisecond) }
	holds := []hold{{start: at(1), end: at(3)}, {start: at(3), end: at(6)}, {start: at(5), end: at(7)}}
	got := timeline(holds, begin, at(timelineWidth))
	if want := "-aabb!c" + strings.Repeat("-", timelineWidth-7); got != want {
		t.Errorf("timeline = %q, want %q", got, want)
	}
}
