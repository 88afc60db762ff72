package integration_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/leaks"
	"github.com/zklock/go-zklock/zklock"
)

// chaosTask is the part of a task that only workers of the chaos test need.
type chaosTask struct {
	Index, Of int           // this worker's index, and the number of workers
	Registers string        // the registers' URL
	Znode     string        // the path of the register in ZooKeeper
	Hosts     []string      // the addresses for the control
	Timeout   time.Duration // the session timeout of the control
}

// chaosReport is what a worker of the chaos test reports several times a second.
type chaosReport struct {
	Since  int64          // each goroutine with short turns has completed one that began at this time or later
	Cycles int            // the number of completed turns
	Lost   int            // the number of lost locks
	Counts map[string]int // the numbers of errors by class, and of acknowledged writes
	Trusts int64          // the session whose lock the control believes to hold; 0: it does not believe so
}

// chaosWorker is a worker of the chaos test. Its goroutines acquire locks of all kinds and
// write to registers under them, until the test stops it. It counts the errors that an
// application has to expect, and reports all others as violations.
type chaosWorker struct {
	*worker
	client    *zklock.Client
	registers *registerClient
	journal   *journal
	stop      context.Context

	since  []atomic.Int64 // by goroutine: when its newest completed turn began
	cycles atomic.Int64
	lost   atomic.Int64
	trusts atomic.Int64 // see chaosReport.Trusts

	mu     sync.Mutex
	counts map[string]int // guarded by mu
}

const (
	// reportInterval is the time between two reports of a worker.
	reportInterval = 100 * time.Millisecond

	// maxThought is the longest pause between two turns of a goroutine.
	maxThought = 16 * time.Millisecond
)

// chaos runs a worker of the chaos test. It reads three lines from standard input: at the
// first it starts, at the second it stops, at the third it closes its client.
func (w *worker) chaos() error {
	k := w.task.Chaos
	client, err := zklock.Open(w.task.URL)
	if err != nil {
		return err
	}
	defer client.Close()
	log, err := createJournal(w.task.Log)
	if err != nil {
		return err
	}
	c := &chaosWorker{worker: w, client: client, registers: newRegisterClient(k.Registers), journal: log, counts: make(map[string]int)}
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	if err := client.Ping(ctx); err != nil {
		return err
	}
	lines := bufio.NewReader(os.Stdin)
	w.print(report{What: "ready"})
	if _, err := lines.ReadString('\n'); err != nil {
		return fmt.Errorf("read the line for the start: %w", err)
	}
	stop, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.stop = stop
	var all, reporting sync.WaitGroup
	jobs := c.jobs()
	c.since = make([]atomic.Int64, len(jobs))
	for g, j := range jobs {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(k.Index), uint64(g)))
			for stop.Err() == nil {
				c.turn(g, j, rng)
			}
		})
	}
	all.Go(func() { c.control(k.Index, c.trust) })
	all.Go(func() { c.control((k.Index+1)%k.Of, c.covet) })
	quiet := make(chan struct{})
	reporting.Go(func() { c.reportUntil(quiet, jobs) })

	if _, err := lines.ReadString('\n'); err != nil {
		return fmt.Errorf("read the line for the stop: %w", err)
	}
	cancel()
	all.Wait()
	close(quiet)
	reporting.Wait()
	c.registers.http.CloseIdleConnections()
	w.print(report{What: "idle", Chaos: c.report(jobs)})
	if _, err := lines.ReadString('\n'); err != nil {
		return fmt.Errorf("read the line for the close: %w", err)
	}
	return errors.Join(client.Close(), log.close(), leaks.Find(nil))
}

// reportUntil reports until quiet is closed.
func (c *chaosWorker) reportUntil(quiet <-chan struct{}, jobs []job) {
	tick := time.NewTicker(reportInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.print(report{What: "progress", Chaos: c.report(jobs)})
		case <-quiet:
			return
		}
	}
}

func (c *chaosWorker) report(jobs []job) *chaosReport {
	r := &chaosReport{Since: monotonic(), Cycles: int(c.cycles.Load()), Lost: int(c.lost.Load()), Counts: make(map[string]int), Trusts: c.trusts.Load()}
	for g := range c.since {
		if !jobs[g].long {
			r.Since = min(r.Since, c.since[g].Load())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for what, n := range c.counts {
		r.Counts[what] = n
	}
	return r
}

func (c *chaosWorker) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[what]++
}

// violation reports something that must not happen.
func (c *chaosWorker) violation(format string, args ...any) {
	c.print(report{What: "violation", Err: fmt.Sprintf(format, args...)})
}

// pause waits for d, or until the worker stops.
func (c *chaosWorker) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.stop.Done():
	}
}

// visit is one turn with a lock.
type visit struct {
	*chaosWorker
	lock     *zklock.Lock
	rng      *rand.Rand
	from, to int64 // see entry.From and entry.To
	writes   []entry
}

// held reports whether the lock is held now, and records that time if it is. It reads the
// clock before it calls Valid: if Valid is true, the lock was held when the clock was read.
func (v *visit) held() bool {
	now := monotonic()
	if !v.lock.Valid() {
		return false
	}
	if v.from == 0 {
		v.from = now
	}
	v.to = now
	return true
}

// turn acquires a lock, works under it, and releases it. One turn in ten waits for the lock
// for a short time only.
func (c *chaosWorker) turn(g int, j job, rng *rand.Rand) {
	c.pause(time.Duration(rng.Int64N(int64(maxThought))))
	ctx, cancel := c.stop, context.CancelFunc(func() {})
	hasty := rng.IntN(10) == 0
	if hasty {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(1+rng.IntN(100))*time.Millisecond)
	}
	defer cancel()
	began := monotonic()
	l, err := j.pick(rng).Acquire(ctx)
	if err != nil {
		c.refused(ctx, err)
		return
	}
	v := &visit{chaosWorker: c, lock: l, rng: rng}
	v.held()
	j.work(v)
	v.held()
	switch err := l.Release(context.Background()); {
	case err == nil:
	case errors.Is(err, zklock.ErrReleasePending):
		c.count("release: pending")
	case errors.Is(err, zklock.ErrLost):
		c.count("release: lost")
	default:
		c.violation("Release: an error of an unknown class: %v", err)
	}
	e := entry{Worker: c.task.Chaos.Index, Goroutine: g, Mode: l.Mode(), Token: l.Token(), Began: began, Ended: monotonic(),
		From: v.from, To: v.to}
	if lost := (*zklock.LostError)(nil); errors.As(l.Err(), &lost) {
		e.Lost, e.Cause = monotonic()-int64(time.Since(lost.At)), causeOf(lost)
	}
	for _, name := range l.Names() {
		e.Name = name
		v.writes = append(v.writes, e)
	}
	c.journal.note(v.writes...)
	if e.Lost != 0 {
		c.lost.Add(1)
		return
	}
	c.cycles.Add(1)
	c.since[g].Store(began)
}

// causeOf returns the class of the reason why a lock was lost.
func causeOf(lost *zklock.LostError) string {
	for _, cause := range []error{zklock.ErrLeaseOver, zklock.ErrSessionExpired, zklock.ErrNodeDeleted, zklock.ErrClosed} {
		if errors.Is(lost, cause) {
			return cause.Error()
		}
	}
	return lost.Cause.Error()
}

// refused checks the error of an Acquire: a waiter gives up only when its context ends.
func (c *chaosWorker) refused(ctx context.Context, err error) {
	switch ended := ctx.Err() != nil && errors.Is(err, ctx.Err()); {
	case errors.Is(err, zklock.ErrUnavailable):
		c.count("acquire: unavailable")
	case errors.Is(err, zklock.ErrNotAcquired) && ended:
		c.count("acquire: gave up")
	default:
		c.violation("Acquire: an error of an unexpected class (the context's error is %v): %v", ctx.Err(), err)
	}
}
