package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/wait"
)

// patience is the longest time that a test waits for something.
const patience = 60 * time.Second

// programEnv makes the test binary run as the program. Its value is the program's
// arguments.
const programEnv = "OBSERVABILITY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if args := os.Getenv(programEnv); args != "" {
		os.Args = append(os.Args[:1], strings.Fields(args)...)
		main()
		return
	}
	os.Exit(m.Run())
}

// program is the example in a separate process.
type program struct {
	http, grpc, metrics string // addresses
	stop                func() // interrupts the process, and waits until it has ended
}

// start runs the program until it is stopped, or the test is over.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), programEnv+"="+strings.Join(args, " "))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &program{}
	lines := bufio.NewReader(stderr)
	first, err := lines.ReadString('\n')
	if _, scan := fmt.Sscanf(first, "http %s grpc %s metrics %s", &p.http, &p.grpc, &p.metrics); err != nil || scan != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("the first line of the program is %q, %v, want its addresses", first, err)
	}
	stopped := false
	p.stop = func() {
		if stopped {
			return
		}
		stopped = true
		hurry := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer hurry.Stop()
		_ = cmd.Process.Signal(os.Interrupt) // an error means that the process has ended
		rest, _ := io.ReadAll(lines)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program ended with %v\n%s", err, rest)
		}
	}
	t.Cleanup(p.stop)
	return p
}

var eventually = wait.Until

// The demonstration ends by itself. In its traces, spans of the lock are below those of the
// request, on an ensemble in memory and on a server.
func TestDemonstrationPrintsSpansAndMetrics(t *testing.T) {
	t.Run("in memory", func(t *testing.T) {
		t.Parallel()
		demonstrates(t, "mem://"+t.Name())
	})
	t.Run("on a server", func(t *testing.T) {
		t.Parallel()
		ensemble.Require(t)
		demonstrates(t, ensemble.Start(t, ensemble.Config{}).URL("/shop", nil))
	})
}

func demonstrates(t *testing.T, url string) {
	t.Helper()
	var out, log bytes.Buffer
	if err := run(t.Context(), []string{"-url", url, "-demo", "4s", "-stdout"}, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	type span struct {
		Name                string
		SpanContext, Parent struct{ TraceID, SpanID string }
	}
	byID := make(map[string]span)
	metrics := 0
	for d := json.NewDecoder(&out); ; {
		var line struct {
			span
			ScopeMetrics []any
		}
		if err := d.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		byID[line.SpanContext.SpanID] = line.span
		metrics += len(line.ScopeMetrics)
	}
	parents := make(map[string]bool)
	for _, s := range byID {
		if p, ok := byID[s.Parent.SpanID]; ok && p.SpanContext.TraceID == s.SpanContext.TraceID {
			parents[p.Name+" > "+s.Name] = true
		}
	}
	for _, want := range []string{
		"HTTP POST > POST /orders/{id}/pay",
		"POST /orders/{id}/pay > zklock.acquire", "POST /orders/{id}/pay > zklock.hold", "POST /orders/{id}/pay > zklock.release",
		"orders.v1.Orders/Pay > zklock.acquire", "zklock.acquire > zklock.wait",
	} {
		if !parents[want] {
			t.Errorf("no spans are parent and child as in %s", want)
		}
	}
	if metrics == 0 {
		t.Error("the output has no metrics")
	}
}

func TestArguments(t *testing.T) {
	if f, err := parse([]string{"-prometheus", ":9464"}); err != nil || f.prometheus != "127.0.0.1:9464" {
		t.Errorf("-prometheus :9464 is %q, %v, want the loopback address", f.prometheus, err)
	}
	for _, args := range [][]string{{"-nonsense"}, {"argument"}, {"-url", "nonsense://"}, {"-http", "nonsense"}, {"-prometheus", "nonsense"}} {
		if err := run(context.Background(), args, io.Discard, io.Discard); err == nil {
			t.Errorf("arguments %q were accepted", args)
		}
	}
}
