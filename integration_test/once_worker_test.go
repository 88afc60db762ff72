package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/once"
)

// onceTask is the work of a process that runs slots.
type onceTask struct {
	Process int           // which process of the fleet it is
	Life    int           // how often that process has started
	From    int           // the first slot that it runs
	Slots   int           // the number of slots
	Began   int64         // when the first slot begins, in nanoseconds since the Unix epoch
	Every   time.Duration // the time between two slots
	Ahead   time.Duration // by how much the process's clock is ahead
	Deaths  float64       // the probability that it kills itself in a job, and that it does right after one
	Journal string        // all processes append what they do to this file
}

// slot returns the text of a slot.
func (k *onceTask) slot(i int) string {
	return time.Unix(0, k.Began).Add(time.Duration(i) * k.Every).UTC().Format("2006-01-02T15:04:05.000000000Z")
}

// What a process writes into the journal. Each is one line, in one write, so that a process that
// is killed leaves complete lines.
const (
	onceStart = "start" // a job begins
	onceEnd   = "end"   // a job has done its work
	onceDone  = "done"  // Do has returned nil, and the slot has run here
	oncePass  = "pass"  // Do has returned nil, and the slot had run before
	onceLost  = "lost"  // Do has returned an error: the lock was lost, or the outcome is not known
	onceFail  = "fail"  // Do has returned another error
)

// once runs each slot when its time has come by the process's own clock.
func (w *worker) once() error {
	k := w.task.Once
	c, err := zklock.Open(w.task.URL)
	if err != nil {
		return err
	}
	defer c.Close()
	journal, err := os.OpenFile(k.Journal, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer journal.Close()
	write := func(what string, slot int, token zklock.Token, detail error) {
		fmt.Fprintf(journal, "%s %d %d %d %v %q\n", what, k.Process, k.Life, slot, token, fmt.Sprint(detail))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	defer cancel()
	for i := k.From; i < k.Slots; i++ {
		due := time.Unix(0, k.Began).Add(time.Duration(i)*k.Every - k.Ahead)
		if err := pause(ctx, time.Until(due)); err != nil {
			return err
		}
		for {
			var token zklock.Token
			ran, err := once.Do(ctx, c, w.task.Name, k.slot(i), func(ctx context.Context) error {
				l, held := zklock.FromContext(ctx)
				if !held {
					return context.Cause(ctx)
				}
				token = l.Token()
				write(onceStart, i, token, nil)
				half := rand.N(2500 * time.Microsecond)
				if err := pause(ctx, half); err != nil {
					return err
				}
				die(k.Deaths)
				if err := pause(ctx, half); err != nil {
					return err
				}
				write(onceEnd, i, token, nil)
				die(k.Deaths)
				return nil
			})
			switch {
			case ran && err == nil:
				write(onceDone, i, token, nil)
			case err == nil:
				write(oncePass, i, token, nil)
			case errors.Is(err, zklock.ErrLost), errors.Is(err, zklock.ErrUnknownOutcome):
				write(onceLost, i, token, err)
			default:
				write(onceFail, i, token, err)
			}
			if err == nil {
				break
			}
			if errors.Is(err, zklock.ErrConflict) || ctx.Err() != nil {
				return err
			}
		}
	}
	return nil
}

// die kills this process with a probability.
func die(probability float64) {
	if rand.Float64() >= probability {
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // until the signal is delivered
}

// pause waits for d. It returns the cause if ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
