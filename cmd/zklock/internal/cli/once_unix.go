//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zklock/go-zklock/cmd/zklock/internal/run"
	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/once"
)

// turn is a call of once.Do whose job is the command of this run. Its methods are called in this order, by one
// goroutine.
type turn struct {
	client *zklock.Client
	name   string
	slot   string

	began chan *zklock.Lock // the lock of a slot that is to run
	job   chan error        // the outcome of the command
	done  chan error        // the result of once.Do
}

func newTurn(client *zklock.Client, name, slot string) *turn {
	return &turn{client: client, name: name, slot: slot, began: make(chan *zklock.Lock, 1), job: make(chan error, 1), done: make(chan error, 1)}
}

// acquire returns the lock under which the command is to run, or errSlotHasRun.
func (t *turn) acquire(ctx context.Context, opts ...zklock.AcquireOption) (*zklock.Lock, error) {
	go func() {
		ran, err := once.Do(ctx, t.client, t.name, t.slot, func(ctx context.Context) error {
			lock, _ := zklock.FromContext(ctx)
			t.began <- lock
			return <-t.job
		}, opts...)
		if !ran && err == nil {
			err = errSlotHasRun
		}
		t.done <- err
	}()
	select {
	case lock := <-t.began:
		return lock, nil
	case err := <-t.done:
		return nil, err
	}
}

// errJobFailed stands for a command that has not succeeded: its slot stays open.
var errJobFailed = errors.New("the command has failed")

// errNotRecorded stands for a record that a signal has ended the wait for.
var errNotRecorded = errors.New("the servers do not answer, and a signal has ended the wait for them")

// record notes that the slot has run. Only then is the lock released. A slot that is not recorded runs again, so
// record waits for the ensemble while the lock is held. If a signal has asked for the end of this process, or does so now,
// record waits as long as a release does: what has sent it will kill this process at last.
func (t *turn) record(asked bool, signals <-chan os.Signal) error {
	t.job <- nil
	late := time.NewTimer(releaseTime)
	defer late.Stop()
	for {
		end := late.C
		if !asked {
			end = nil
		}
		select {
		case err := <-t.done:
			return err
		case sig := <-signals:
			if run.EndsWait(sig) && !asked {
				asked = true
				late.Reset(releaseTime)
			}
		case <-end:
			return errNotRecorded
		}
	}
}

// giveUp releases the lock and leaves the slot open. It reports whether the release was confirmed in time.
func (t *turn) giveUp() bool {
	t.job <- errJobFailed
	late := time.NewTimer(releaseTime)
	defer late.Stop()
	select {
	case <-t.done:
		return true
	case <-late.C:
		return false
	}
}

// why says which slot has run.
func (t *turn) why(ctx context.Context) (text string, isLater bool) {
	ctx, cancel := context.WithTimeout(ctx, holdingTime)
	defer cancel()
	for s, err := range t.client.Slots(ctx, t.name) {
		now := time.Now()
		switch {
		case err != nil, s.Name != t.name:
			continue
		case s.Slot == t.slot:
			return fmt.Sprintf("the slot %q of %q has run, %s ago", t.slot, t.name, operator.MillisOf(s.Recorded).Age(now, false)), false
		}
		return fmt.Sprintf("the slot %q of %q does not run, since the slot %q, which is above it, has run %s ago: compare the clocks, and the form of the slots",
			t.slot, t.name, s.Slot, operator.MillisOf(s.Recorded).Age(now, false)), true
	}
	return fmt.Sprintf("the slot %q of %q has run", t.slot, t.name), false
}

// runOnce runs a command for a slot.
func (a *app) runOnce(ctx context.Context, f runFlags, name, slot string, command []string) error {
	w, err := a.wrapper(f, []string{name}, command)
	if err != nil {
		return err
	}
	defer w.close()
	w.slot = slot
	t := newTurn(w.client, name, slot)
	f.exitCode, f.quiet = exitNotAcquired, false // -E and -q are about the slot
	defer w.startHelpers()()
	lock, err := f.acquire(ctx, w, t.acquire, func(*zklock.Lock) { w.pending = !t.giveUp() })
	if errors.Is(err, errSlotHasRun) {
		text, isLater := t.why(ctx)
		return &failure{code: w.flags.exitCode, err: errors.New(text), silent: w.flags.quiet && !isLater}
	}
	if err != nil {
		return err
	}
	result, err := w.run(lock)
	code := exitOK
	if err == nil {
		code, err = w.outcome(lock, result)
	}
	if code != exitOK || err != nil {
		w.messages.mute()
		w.pending = !t.giveUp()
		return cmp.Or(err, exit(code))
	}
	w.messages.mute()
	if err := t.record(result.Ended, w.signals.Caught()); err != nil {
		w.quiet = true
		code := codeOf(err)
		if errors.Is(err, errNotRecorded) {
			w.pending, code = true, exitLost
		}
		if lost := (*zklock.LostError)(nil); errors.As(err, &lost) {
			err = lost // all that failed with it says no more
		}
		return fail(code, fmt.Errorf("the command has ended with 0, and whether its slot counts as run is not known: it may run again: %w", err))
	}
	return nil
}
