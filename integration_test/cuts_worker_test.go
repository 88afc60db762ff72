package integration_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// cycleReport has the figures of a worker that acquired and released one name for a while.
type cycleReport struct {
	Cycles  int
	Places  int           // the cycles that created a place in ZooKeeper's queue
	Longest time.Duration // from the call of Acquire to the return of Release
	Slow    []turn        // the turns that took longer than noticeable
	Errors  []string

	Reconnects, SessionsLost uint64
}

// turn is one acquisition and its release: the times of the call of Acquire and of the return of
// Release (monotonic).
type turn struct{ Began, Ended int64 }

// noticeable is the shortest turn that a worker reports.
const noticeable = 50 * time.Millisecond

// cycle acquires and releases the task's name in several goroutines.
func (w *worker) cycle() error {
	c, err := zklock.Open(w.task.URL)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), w.task.For+patience)
	defer cancel()
	if err := c.Ping(ctx); err != nil {
		return err
	}
	w.print(report{What: "ready"})
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return fmt.Errorf("read the line for the start: %w", err)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	var sum cycleReport
	end := time.Now().Add(w.task.For)
	for range w.task.Goroutines {
		all.Go(func() {
			var mine cycleReport
			for time.Now().Before(end) {
				began := monotonic()
				l, err := c.Mutex(w.task.Name).Acquire(ctx)
				if err == nil {
					if l.Token().Turn == 0 {
						mine.Places++
					}
					err = l.Release(ctx)
				}
				ended := monotonic()
				took := time.Duration(ended - began)
				mine.Longest = max(mine.Longest, took)
				if took > noticeable {
					mine.Slow = append(mine.Slow, turn{began, ended})
				}
				if err != nil {
					mine.Errors = append(mine.Errors, err.Error())
					continue
				}
				mine.Cycles++
			}
			mu.Lock()
			defer mu.Unlock()
			sum.add(mine)
		})
	}
	all.Wait()
	st := c.Stats()
	sum.Reconnects, sum.SessionsLost = st.Reconnects, st.SessionsLost
	w.print(report{What: "cycled", Cycle: &sum})
	return c.Close()
}

// add adds another report's figures.
func (r *cycleReport) add(o cycleReport) {
	r.Cycles += o.Cycles
	r.Places += o.Places
	r.Longest = max(r.Longest, o.Longest)
	r.Slow = append(r.Slow, o.Slow...)
	r.Errors = append(r.Errors, o.Errors...)
	r.Reconnects += o.Reconnects
	r.SessionsLost += o.SessionsLost
}
