package once

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// MaxSlot is the length of the longest slot, in bytes.
const MaxSlot = 512

// Do runs fn if the slot is above the last one that has run under that name, in any process. It
// acquires the lock of the name first, and so waits while another process runs a slot of it: if
// that process fails, this one runs the slot. ctx bounds the wait, and fn's context is derived
// from it. opts are those of the acquisition: [zklock.WithWait], for example, bounds the wait.
//
// ran says that fn was called, whatever it returned. If ran is false and err is nil, the slot
// has run before. The slot counts as run when fn has returned nil and the ledger has been
// written; then err is nil. Otherwise the slot stays open, and the next call for it runs it:
//
//   - If fn returns an error, Do returns that error.
//   - If the lock is lost while fn runs, the error matches [zklock.ErrLost], whatever fn returned.
//     fn's context ends with that cause.
//   - If the outcome of the ledger's write is not known, the error matches
//     [zklock.ErrUnknownOutcome]: the slot is open, or it has run. Do repeats the write while the
//     lock is held, so this happens only if the lock is lost as well, or if a session timeout
//     passes.
//
// Do writes the ledger even if ctx ends after fn has returned nil, and waits for that no longer
// than a session timeout. The error matches [zklock.ErrConflict] if the ledger's znode belongs to
// another program, and [zklock.ErrMisuse] if the slot is empty, is not UTF-8, or is longer than
// MaxSlot. Without the right to create a ledger Do fails before it calls fn. Errors of the
// acquisition are those of [zklock.Acquirer]. If ctx carries the lock of the name, the error
// matches [zklock.ErrDeadlock], with [zklock.Reenter] too.
//
// Do costs a lock and a read. If it calls fn, it costs one transaction more, and another one at
// the name's first use, which creates the ledger.
func Do(ctx context.Context, client *zklock.Client, name, slot string, fn func(ctx context.Context) error, opts ...zklock.AcquireOption) (ran bool, err error) {
	if err := check(slot, fn); err != nil {
		return false, failed("do", name, err)
	}
	return run(ctx, "do", client, name, "", func(string) (string, error) { return slot, nil }, fn, opts...)
}

// run does what Do does, for Do and for each try of Every; op names the caller. next chooses the
// slot: it gets the slot that the ledger has, under the lock, and fn runs if the chosen one is
// above it. A new ledger begins with first: the slot before the first one of Every, so that no
// process forgets where the schedule began.
func run(ctx context.Context, op string, client *zklock.Client, name, first string, next func(recorded string) (string, error), fn func(context.Context) error, opts ...zklock.AcquireOption) (ran bool, err error) {
	lock, err := client.Mutex(name).Acquire(ctx, opts...)
	switch {
	case errors.Is(err, zklock.ErrDeadlock):
		return false, failed(op, name, errJoined) // the advice in err is for locks that may be joined
	case errors.Is(err, zklock.ErrLost):
		return false, failed(op, name, fmt.Errorf("%w: %w", errOuterLost, err))
	case err != nil:
		return false, err
	}
	if isJoined(ctx, lock) {
		_ = lock.Release(context.WithoutCancel(ctx)) // the other lock keeps the node, so no request is made
		return false, failed(op, name, errJoined)
	}
	noted := false // the outcome is certain, whatever becomes of the lock
	defer func() {
		// A release that is pending is logged. It waits no longer than a session timeout.
		released := lock.Release(context.WithoutCancel(ctx))
		switch {
		case noted || !errors.Is(released, zklock.ErrLost) || errors.Is(err, zklock.ErrLost):
		case err == nil:
			err = released
		default:
			err = fmt.Errorf("%w; the function returned: %w", released, err)
		}
	}()
	work, cancel := lock.Context(ctx)
	defer cancel()
	l := ledger{lock: lock, path: pathOf(client, name), acl: client.ACL()}
	before, err := l.open(work, first)
	var slot string
	if err == nil {
		slot, err = next(before.Slot)
	}
	switch {
	case err != nil:
		noted = true // err says why nothing has run
		return false, failed(op, name, err)
	case slot <= before.Slot:
		noted = true
		return false, nil
	case !lock.Valid(): // the process was stopped since the read
		return false, failed(op, name, cmp.Or(lock.Err(), errLate))
	}
	if err := fn(work); err != nil {
		return true, errs.Bounded(work, err, zklock.ErrMaxHold)
	}
	if err := l.record(ctx, before, slot); err != nil {
		return true, failed(op, name, err)
	}
	noted = true
	return true, nil
}

// Forget removes the ledger of a name, so that each slot of it can run again. It does nothing if
// there is none. Forget acquires the lock of the name, and so waits while a job runs; ctx bounds
// the whole call. Without a Forget the ledger of a job that never runs again stays: one small
// znode.
func Forget(ctx context.Context, client *zklock.Client, name string, opts ...zklock.AcquireOption) error {
	lock, err := client.Mutex(name).Acquire(ctx, opts...)
	if err != nil {
		return err
	}
	// An error of the release says nothing about the ledger; one that is pending is logged.
	defer func() { _ = lock.Release(context.WithoutCancel(ctx)) }()
	l := ledger{lock: lock, path: pathOf(client, name), acl: client.ACL()}
	if err := l.remove(ctx); err != nil {
		return failed("forget", name, err)
	}
	return nil
}

// isJoined reports whether a lock has joined, by [zklock.Reenter], one that ctx carries. The
// ledger relies on one writer for each token, so a slot never runs under a joined lock: two
// calls that join one lock would both run it.
func isJoined(ctx context.Context, lock *zklock.Lock) bool {
	return slices.ContainsFunc(zklock.HeldIn(ctx), func(l *zklock.Lock) bool {
		return l.Token() == lock.Token() && slices.Contains(l.Names(), lock.Name())
	})
}

// errJoined is the error for a call that would run a slot under a lock of its caller.
var errJoined = errs.Case(zklock.ErrDeadlock, "the context carries a lock of this name, and a job can neither join it nor wait for it: call Do after its release, with a context that does not carry it")

// errOuterLost is the error for a call whose context carries a lock of its name that was lost.
var errOuterLost = errs.Case(zklock.ErrLost, "the context carries a lock of this name: stop, as after each loss")

// errLate means that the lease ran out between the read of the ledger and the call of fn.
var errLate = fmt.Errorf("%w: its lease ran out before the job was called", zklock.ErrLost)

// errNoJob is the error for a call without a job.
var errNoJob = misuse("the function is nil: pass the job")

// check returns an error if Do cannot run fn for a slot.
func check(slot string, fn func(context.Context) error) error {
	switch {
	case fn == nil:
		return errNoJob
	case slot == "":
		return misuse("the slot is empty: pass a text that rises from slot to slot, such as a time in RFC 3339 and UTC")
	case len(slot) > MaxSlot:
		return misuse(fmt.Sprintf("the slot has %d bytes, at most %d are allowed", len(slot), MaxSlot))
	case !utf8.ValidString(slot):
		return misuse("the slot is not UTF-8")
	}
	return nil
}

// misuse returns an error for a mistake in the program.
func misuse(text string) error {
	return fmt.Errorf("%w: %s", zklock.ErrMisuse, text)
}

// failed adds the operation and the name to an error.
func failed(op, name string, err error) error {
	const longest = 512 // an invalid name may be longer
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "")
	}
	return fmt.Errorf("once: %s %q: %w", op, name, err)
}
