package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	serving "github.com/zklock/go-zklock/contrib/locktest/worker"
	"github.com/zklock/go-zklock/zklock"
)

// workerEnv is an environment variable. If it has a task, this test binary is a worker
// process that contends for locks, instead of running tests.
const workerEnv = "ZKLOCK_TEST_WORKER"

// task is the work of a worker process.
type task struct {
	Role   string   // contend, hold, fill, lead, panic, mix, refuse, chaos, liar, cycle, once, every, mortal, philosopher or service
	URL    string   // the client's URL
	URLs   []string // for refuse and service
	Name   string   // the lock's name; for fill: how the names begin; for service: http or grpc
	Rounds int      // for contend: how often it acquires the lock; for fill: how many locks it acquires
	Guard  string   // for contend: a file that exists while a worker holds the lock

	For time.Duration // for mix, cycle and philosopher: how long it runs

	Goroutines int    // for cycle
	Log        string // for mix: the file for the locks that it held; for chaos: the journal of all workers

	Register string // for mix: the address of the register that the locks protect

	Chaos *chaosTask // for chaos
	Liar  *liarTask  // for liar
	Once  *onceTask  // for once

	Mortal *mortalTask // for mortal
}

// report is one line that a worker prints.
type report struct {
	What  string // ready, waiting, held, full, lost, gave, beat, mixing, refused, progress, idle, cycled, takes, has, gives, failed, begun, ran, violation, call, done, error
	From  int64  // monotonic; beat: when the request was sent; gave: when the lock was acquired; full: how many were refused; begun and ran: the slot, in seconds
	At    int64  // monotonic; when the line was printed
	Token zklock.Token
	Err   string

	Cycle *cycleReport `json:",omitempty"`
	Fork  *forkReport  `json:",omitempty"`
	Call  *callReport  `json:",omitempty"`
}

// worker runs the task of a worker process.
type worker struct {
	task task
	mu   sync.Mutex // for os.Stdout
}

// runWorker runs the task in the environment, if there is one.
func runWorker() (code int, ran bool) {
	text := os.Getenv(workerEnv)
	if text == "" {
		return 0, false
	}
	w := &worker{}
	err := json.Unmarshal([]byte(text), &w.task)
	if err == nil {
		err = w.run()
	}
	if err != nil {
		w.print(report{What: "error", Err: err.Error()})
		return 1, true
	}
	w.print(report{What: "done"})
	return 0, true
}

// print prints a report as one line, with a single write. So the reports of a process that
// is killed are complete lines.
func (w *worker) print(r report) {
	r.At = monotonic()
	line, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	os.Stdout.Write(append(line, '\n'))
}

func (w *worker) run() error {
	switch w.task.Role {
	case "cycle":
		return w.cycle()
	case "refuse":
		return w.refuse()
	case "chaos":
		serving.Main(openChaos(w.task))
		os.Exit(0) // locktest expects no report
	case "liar":
		serving.Main(openLiar(w.task.Liar))
		os.Exit(0) // locktest expects no report
	case "once":
		return w.once()
	case "every":
		return w.every()
	case "mortal":
		return w.mortal()
	case "philosopher":
		return w.philosophize()
	case "service":
		return w.serve()
	}
	c, err := zklock.Open(w.task.URL, zklock.WithHooks(w.hooks()))
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Ping(ctx); err != nil {
		return err
	}
	w.print(report{What: "ready"})
	stdin := bufio.NewReader(os.Stdin)
	if _, err := stdin.ReadString('\n'); err != nil {
		return fmt.Errorf("read the line for the start: %w", err)
	}
	switch w.task.Role {
	case "panic":
		return w.panic(ctx, c)
	case "hold":
		return w.hold(ctx, c, stdin)
	case "fill":
		return w.fill(ctx, c, stdin)
	case "lead":
		return w.lead(ctx, c, stdin)
	case "mix":
		return w.mix(c)
	}
	for i := range w.task.Rounds {
		if err := w.round(ctx, c, i == w.task.Rounds-1); err != nil {
			return err
		}
	}
	return nil
}

// hooks report waits, and committed heartbeats with the time before each was sent.
func (w *worker) hooks() zklock.Hooks {
	if w.task.Role == "mix" {
		return zklock.Hooks{} // too many waits to report
	}
	return zklock.Hooks{
		Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			w.print(report{What: "waiting"})
			return ctx, nil
		},
		Lost: func(context.Context, zklock.LostEvent) { w.print(report{What: "lost"}) },
		Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			if e.Kind != "heartbeat" {
				return ctx, nil
			}
			sent := monotonic()
			return ctx, func(err error) {
				if err == nil {
					w.print(report{What: "beat", From: sent})
				}
			}
		},
	}
}

// hold acquires the lock and holds it until the parent process writes a line or dies.
func (w *worker) hold(ctx context.Context, c *zklock.Client, stdin *bufio.Reader) error {
	l, err := c.Mutex(w.task.Name).Acquire(ctx)
	if err != nil {
		return err
	}
	w.print(report{What: "held", Token: l.Token()})
	_, _ = stdin.ReadString('\n')
	return l.Release(ctx)
}

// round acquires the lock once and checks that no other worker holds it. If it is not the last round,
// it holds the lock until another worker waits.
func (w *worker) round(ctx context.Context, c *zklock.Client, last bool) (err error) {
	l, err := c.Mutex(w.task.Name).Acquire(ctx)
	if err != nil {
		return err
	}
	held := monotonic()
	guard, err := os.OpenFile(w.task.Guard, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("while the lock is held with token %v: %w", l.Token(), err)
	}
	if !last {
		err = w.awaitRival(ctx, c)
	}
	err = errors.Join(err, l.Verify(ctx), guard.Close(), os.Remove(w.task.Guard)) // Verify takes some time
	w.print(report{What: "gave", From: held, Token: l.Token()})
	return errors.Join(err, l.Release(ctx))
}

// awaitRival returns when another contender waits for the lock that this worker holds.
func (w *worker) awaitRival(ctx context.Context, c *zklock.Client) error {
	for {
		queue, err := c.Contenders(ctx, w.task.Name)
		if err != nil || len(queue) > 1 {
			return err
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// process is the parent's view of a worker process.
type process struct {
	t       testing.TB
	task    task
	cmd     *exec.Cmd
	start   func() // writes a line to the worker: a worker that is ready begins
	stop    func() // closes the worker's standard input
	reports chan report
	stderr  bytes.Buffer // complete once reports is closed
}

// startWorker runs a worker until the test is over.
func startWorker(t testing.TB, k task) *process {
	t.Helper()
	return startWorkerBy(t, k)
}

// startWorkerBy is startWorker by way of another program, which gets the worker's program as its last argument.
func startWorkerBy(t testing.TB, k task, by ...string) *process {
	t.Helper()
	k.URL = withCanary(k.URL)
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append(by, self)
	p := &process{t: t, task: k, cmd: exec.Command(args[0], args[1:]...), reports: make(chan report, 1<<14)}
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	p.cmd.Stderr = &searched{where: "a worker's stderr", to: &p.stderr}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.start = func() {
		if _, err := stdin.Write([]byte("\n")); err != nil {
			t.Error(err)
		}
	}
	p.stop = func() { _ = stdin.Close() } // an error means that the worker has ended
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(io.TeeReader(stdout, &searched{where: "a worker's stdout", to: io.Discard}))
		for lines.Scan() {
			var r report
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				r = report{What: "error", Err: "not a report: " + lines.Text()}
			}
			p.reports <- r
		}
		_ = p.cmd.Wait() // a killed process ends with an error, too
		close(p.reports)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // an error means that it has ended already
		for range p.reports {
		}
		<-ended
	})
	return p
}

// next waits for the next report; false means that the process has ended.
func (p *process) next() (report, bool) {
	p.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case r, ok := <-p.reports:
		if r.What == "error" {
			p.t.Fatalf("worker %d: %s", p.cmd.Process.Pid, r.Err)
		}
		return r, ok
	case <-limit.C:
		p.t.Fatalf("worker %d was silent for %v", p.cmd.Process.Pid, patience)
		panic("unreachable")
	}
}

// await waits for a report with that What.
func (p *process) await(what string) report {
	p.t.Helper()
	for {
		r, ok := p.next()
		switch {
		case !ok:
			p.t.Fatalf("worker %d ended before it reported %s\n%s", p.cmd.Process.Pid, what, p.stderr.String())
		case r.What == what:
			return r
		}
	}
}
