package fleet_test

import (
	"errors"
	"os"
	"testing"

	"github.com/zklock/go-zklock/integration_test/fleet"
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

// The test fails when a process fails, ends, or says what it should not.
func TestFailuresAreReported(t *testing.T) {
	for name, act := range map[string]func(*fleet.Process){
		"failed":       func(p *fleet.Process) { p.Send("fail"); p.Expect("echo") },
		"killed":       func(p *fleet.Process) { p.Kill(); p.Expect("echo") },
		"unknown role": func(p *fleet.Process) { p.Expect("began") },
	} {
		r := &recorder{TB: t}
		role := "echo"
		if name == "unknown role" {
			role = "dance"
		}
		p := fleet.Start(r, role)
		func() {
			defer func() { _ = recover() }()
			act(p)
		}()
		if !r.failed {
			t.Errorf("%s: the test did not fail", name)
		}
	}
}
