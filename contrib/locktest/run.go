package locktest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// run is what the parts of a run share.
type run struct {
	config    Config
	history   *history.Recorder
	registers *registers
	slots     []*slot
	clients   []*client     // of the workload
	clocks    string        // a folder for the clocks of workers; "": no clock jumps
	begun     chan struct{} // closed when all workers are ready, and the clients begin
	calm      chan struct{} // closed when the faults are over and no client begins another cycle

	ids, numbers counter // of acquisitions, and of processes
	grants       counter
	stuck        atomic.Bool // a new client has not had a lock within Config.Settle
}

// counter counts from 1.
type counter struct{ n atomic.Int64 }

func (c *counter) next() int { return int(c.n.Add(1)) }

// progressEvery is the time between two lines of progress.
const progressEvery = 5 * time.Second

// Run runs a workload with its faults, and returns the history. Then the faults are over, and new
// clients have tried each name once. The ensemble goes on. An error says that the run could not be
// done, such as a worker that does not start: then the history is worth nothing.
func Run(ctx context.Context, c Config) ([]history.Event, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	h := history.NewRecorder()
	h.NoteClock()
	r := &run{config: c, history: h, registers: newRegisters(h), begun: make(chan struct{}), calm: make(chan struct{})}
	if c.Kills > 0 {
		return r.kill(ctx)
	}
	if slices.ContainsFunc(c.Faults, func(f fault.Fault) bool { return f.Kind == fault.JumpClient }) {
		if r.clocks, err = os.MkdirTemp("", "locktest-clocks"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(r.clocks)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group, working sync.WaitGroup
	join := func() error {
		cancel(nil)
		working.Wait()
		group.Wait()
		var err error
		for _, s := range r.slots {
			err = cmp.Or(err, s.close())
		}
		return err
	}
	begin := func(command []string) (*slot, error) {
		s, err := newSlot(r, command)
		if err != nil {
			return nil, err
		}
		r.slots = append(r.slots, s)
		group.Go(func() {
			if err := s.serve(ctx); err != nil {
				cancel(fmt.Errorf("locktest: %w", err))
			}
		})
		return s, nil
	}
	commands := c.commands()
	for w := range c.Workers {
		s, err := begin(commands[w%len(commands)])
		if err != nil {
			return nil, cmp.Or(err, join())
		}
		for i := range c.Clients {
			client := &client{run: r, slot: s, rng: rand.New(rand.NewPCG(c.Seed, uint64(w*c.Clients+i)))}
			r.clients = append(r.clients, client)
			working.Go(func() { client.serve(ctx) })
		}
		for i, name := range c.Long {
			if c.Alone && i%c.Workers != w {
				continue
			}
			client := &client{run: r, slot: s, rng: rand.New(rand.NewPCG(c.Seed, uint64(i)<<32+uint64(w))), long: name, keeps: i%c.Workers == w}
			working.Go(func() { client.serve(ctx) })
		}
	}
	group.Go(func() { r.report(ctx) })
	if err := r.workload(ctx); err != nil {
		return nil, cmp.Or(err, join())
	}
	h.Note(history.Event{Kind: history.Calm})
	close(r.calm)
	probes, err := begin(c.Worker)
	if err == nil {
		err = r.settle(ctx, probes)
	}
	if err == nil && c.Idle != nil {
		err = r.idle(ctx, &working)
	}
	if err != nil {
		return nil, cmp.Or(err, join())
	}
	h.Note(history.Event{Kind: history.Settled})
	events := h.Events()
	if r.stuck.Load() {
		r.quit() // not before: the history shows what the processes have left behind while they live
	}
	return events, join()
}

// workload waits until the faults, the time and the grants are over.
func (r *run) workload(ctx context.Context) error {
	c := r.config
	for _, s := range r.slots {
		if s.process(ctx) == nil {
			return context.Cause(ctx)
		}
	}
	if err := r.seat(ctx); err != nil {
		return err
	}
	close(r.begun)
	began := time.Now()
	if err := r.faults(ctx); err != nil {
		return err
	}
	pause(ctx, max(0, c.For-time.Since(began)))
	for ctx.Err() == nil && int(r.grants.n.Load()) < c.Grants && time.Since(began) < c.Limit {
		pause(ctx, 10*time.Millisecond)
	}
	return context.Cause(ctx)
}

// settle has a new worker acquire each lock. A name whose probe is not granted in time is stuck, which the
// history shows.
func (r *run) settle(ctx context.Context, probes *slot) error {
	if probes.process(ctx) == nil {
		return context.Cause(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, r.config.Settle)
	defer cancel()
	var group sync.WaitGroup
	locks := slices.Clone(r.config.Locks)
	for _, name := range r.config.Long {
		locks = append(locks, Lock{Name: name})
	}
	for i, l := range locks {
		prober := &client{run: r, slot: probes, rng: rand.New(rand.NewPCG(r.config.Seed, uint64(i)))}
		group.Go(func() {
			if !prober.probe(limited, l) {
				r.stuck.Store(true)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// idle waits until the clients have finished their cycles, and calls Config.Idle.
func (r *run) idle(ctx context.Context, working *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { // ends with the clients: see Run
		working.Wait()
		close(done)
	}()
	limit := time.NewTimer(r.config.Settle)
	defer limit.Stop()
	select {
	case <-done:
		return cmp.Or(context.Cause(ctx), r.config.Idle(ctx))
	case <-limit.C:
		return fmt.Errorf("locktest: a client still waits or works %v after the faults", r.config.Settle)
	}
}

// report writes a line of progress every few seconds.
func (r *run) report(ctx context.Context) {
	for pause(ctx, progressEvery) {
		r.history.NoteClock()
		r.say("%d grants", r.grants.n.Load())
	}
}

// say writes a line of progress. A line that cannot be written changes nothing.
func (r *run) say(format string, args ...any) {
	_, _ = fmt.Fprintf(r.config.Progress, "%6.1fs  %s\n", time.Duration(r.history.Now()).Seconds(), fmt.Sprintf(format, args...))
}
