package fleet_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/fleet"
)

func TestMain(m *testing.M) {
	os.Exit(fleet.Main(m, map[string]fleet.Role{
		"echo": func(m *fleet.Member) error {
			m.Say("began", m.Args...)
			for {
				line, err := m.Await()
				if err != nil || line == "fail" {
					return errors.Join(err, errors.New(line))
				}
				m.Say("echo", line)
			}
		},
		"stop": func(m *fleet.Member) error {
			ctx, stop := context.WithCancelCause(context.Background())
			stop(errors.New("enough"))
			_, err := m.AwaitIn(ctx)
			m.Say("returned", err.Error())
			return nil
		},
	}))
}

// recorder is a test that records a failure.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Fatalf(string, ...any) { r.failed = true; panic(r) }

// A process gets its arguments and lines, and the test gets its lines.
func TestProcessesTalk(t *testing.T) {
	p := fleet.Start(t, "echo", "a", "b")
	if got := p.Expect("began"); got != "a b" {
		t.Errorf("the arguments are %q, want a b", got)
	}
	p.Send("one")
	p.Send("two")
	if got := p.Expect("echo"); got != "one" {
		t.Errorf("the process said %q, want one", got)
	}
	if got := p.Expect("echo"); got != "two" {
		t.Errorf("the process said %q, want two", got)
	}
	p.Silent("echo")
}

// A process that waits for a line stops when its context ends, and says why.
func TestAwaitInStops(t *testing.T) {
	p := fleet.Start(t, "stop")
	for _, word := range []string{"cancelled", "returned"} {
		if got := p.Expect(word); got != "enough" {
			t.Errorf("%s: %q, want the cause", word, got)
		}
	}
}

// The test fails when a process fails, ends, or says what it should not.
func TestFailuresAreReported(t *testing.T) {
	for name, act := range map[string]func(*recorder, *fleet.Process){
		"failed": func(r *recorder, p *fleet.Process) { p.Send("fail"); p.Expect("echo") },
		"killed": func(r *recorder, p *fleet.Process) { p.Kill(); p.Expect("echo") },
		"not silent": func(r *recorder, p *fleet.Process) {
			p.Send("one")
			limit := time.After(time.Minute)
			for !r.failed {
				select {
				case <-limit:
					return
				case <-time.After(time.Millisecond):
					p.Silent("other", "echo")
				}
			}
		},
		"unknown role": func(r *recorder, p *fleet.Process) { p.Expect("began") },
	} {
		r := &recorder{TB: t}
		role := "echo"
		if name == "unknown role" {
			role = "dance"
		}
		p := fleet.Start(r, role)
		func() {
			defer func() { _ = recover() }()
			act(r, p)
		}()
		if !r.failed {
			t.Errorf("%s: the test did not fail", name)
		}
	}
}
