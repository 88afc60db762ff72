package once_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/once"
)

// outage cuts all servers from all clients.
var outage = []memdriver.Cut{memdriver.AroundClients(0), memdriver.AroundClients(1), memdriver.AroundClients(2)}

// oneRun is one call of a job.
type oneRun struct {
	process int
	slot    time.Time
	after   time.Duration // from the slot's beginning to the call
	token   zklock.Token
	err     error
}

// diary is what the processes of a fleet have done, and what they have logged.
type diary struct {
	mu    sync.Mutex
	runs  []oneRun       // guarded by mu; by their beginning
	lines []*slog.Record // guarded by mu
}

// all returns the runs until now. Every may go on while a test reads them.
func (d *diary) all() []oneRun {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.runs)
}

// records returns the lines until now.
func (d *diary) records() []*slog.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// Enabled, Handle, WithAttrs and WithGroup implement slog.Handler.
func (*diary) Enabled(context.Context, slog.Level) bool { return true }

func (d *diary) Handle(_ context.Context, r slog.Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, &r)
	return nil
}

func (d *diary) WithAttrs([]slog.Attr) slog.Handler { return d }
func (d *diary) WithGroup(string) slog.Handler      { return d }

// job returns the job of a process: it calls work, and notes the run.
func (d *diary) job(t *testing.T, process int, work func(ctx context.Context, slot time.Time) error) func(context.Context, time.Time) error {
	return func(ctx context.Context, slot time.Time) error {
		l, held := zklock.FromContext(ctx)
		if !held {
			t.Error("the context carries no lock")
			return nil
		}
		d.mu.Lock()
		i := len(d.runs)
		d.runs = append(d.runs, oneRun{process: process, slot: slot, after: time.Since(slot), token: l.Token()})
		d.mu.Unlock()
		var err error
		if work != nil {
			err = work(ctx, slot)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		d.runs[i].err = err
		return err
	}
}

// ran returns the slots that have run successfully, as their times of day, in the order of their
// beginnings.
func (d *diary) ran() (slots []string) {
	for _, r := range d.all() {
		if r.err == nil {
			slots = append(slots, r.slot.Format("15:04"))
		}
	}
	return slots
}

// logged returns the attributes of the lines with a message, without the errors. Times are times of
// day.
func (d *diary) logged(message string) (lines []string) {
	for _, r := range d.records() {
		if r.Message != message {
			continue
		}
		line := ""
		r.Attrs(func(a slog.Attr) bool {
			switch {
			case a.Key == "name", a.Key == "error":
			case a.Value.Kind() == slog.KindTime:
				line += fmt.Sprintf("%s=%s ", a.Key, a.Value.Time().Format("15:04"))
			default:
				line += fmt.Sprintf("%s=%v ", a.Key, a.Value)
			}
			return true
		})
		lines = append(lines, line)
	}
	return lines
}

// failed returns the slots with a line on a failure.
func (d *diary) failed() (slots []time.Time) {
	for _, r := range d.records() {
		r.Attrs(func(a slog.Attr) bool {
			if r.Message == lineFailed && a.Key == "slot" {
				slots = append(slots, a.Value.Time())
			}
			return true
		})
	}
	return slots
}

// The messages of Every.
const (
	lineMissed = "once: slots were missed"
	lineFailed = "once: a slot failed"
	lineGaveUp = "once: a slot failed too often; this process gives it up"
	lineUnable = "once: no slot can begin"
)

// running is a call of Every in the background.
type running struct {
	stop context.CancelCauseFunc
	done chan struct{} // closed after Every has returned
	err  error         // of Every; read it after done
}

// end stops the call, and returns its error.
func (r *running) end() error { r.stop(nil); <-r.done; return r.err }

// returned waits until the call returns, and returns its error. If it never did, the
// bubble would go on for ever: heartbeats move its clock.
func (r *running) returned(t *testing.T) error {
	t.Helper()
	select {
	case <-r.done:
		return r.err
	case <-time.After(time.Hour):
		t.Fatal("Every has not returned after an hour")
		return nil
	}
}

// every calls Every with a period of an hour in the background, until the end of the test.
func every(t *testing.T, d *diary, process int, c *zklock.Client, work func(ctx context.Context, slot time.Time) error, opts ...once.Option) *running {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	r := &running{stop: cancel, done: make(chan struct{})}
	opts = append([]once.Option{once.WithLogger(slog.New(d))}, opts...)
	go func() {
		defer close(r.done)
		r.err = once.Every(ctx, c, "x", time.Hour, d.job(t, process, work), opts...)
	}()
	t.Cleanup(func() { _ = r.end() })
	synctest.Wait()
	return r
}

// until sleeps until a time of the first day of a bubble, such as 13:30.
func until(t *testing.T, clock string) {
	t.Helper()
	at, err := time.Parse(time.DateTime, "2000-01-01 "+clock+":00")
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(at))
}

// same fails the test if the texts differ.
func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}
