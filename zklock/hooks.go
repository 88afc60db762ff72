package zklock

import (
	"context"
	"reflect"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/hook"
)

// Hooks are functions that a [Client] calls when something happens, for tracing, metrics and logs;
// package tracing uses nothing else. Any field may be nil, which costs nothing.
//
// A hook runs on the goroutine that does what the hook reports. Each session has a separate
// goroutine that calls Lost and Session. Many goroutines may call a hook at the same time. A hook
// must return quickly, and must not wait or call methods of the lock or the client that it is
// about. In particular it must not write to a log or a pipe that can block. While it runs, it holds up:
//
//   - Acquire, Inject and Label: the acquisition that begins.
//   - Wait, Ahead, Handover, and the end of Wait and of Acquire: the acquisition. Its place in the queue stays,
//     and so does the lock, if it has it: all contenders of the name wait. Handover holds up the Release that hands
//     over, too.
//   - Deadlock: the acquisition that fails, and so what its caller holds.
//   - Release: the lock, which stays held. The end of Release: only the caller of Release.
//   - Operation: the request, and those that share its transaction. If heartbeats are held up until the lease
//     runs out, the session's locks are lost.
//   - Lost and Session: the further reports of the session, and Close and Shutdown.
//
// The client does not recover from panics in hooks. Lost, Session, and most calls of Operation, run on the client's
// own goroutines, so a panic there ends the process. A panic in another hook goes on to the caller of the lock's
// method. If that recovers, no lock is held because of the call, and the client removes the queue node.
//
// Acquire, Wait, Release and Operation are called when something begins. Each returns the
// context for what happens until it ends, and the function that the client calls at the
// end. Both may be nil; a nil context means the one that was passed in.
type Hooks struct {
	// Acquire is called when an acquisition starts, and the function that it returns when the
	// acquisition has succeeded or failed. An acquisition that fails because of its name or other
	// arguments is reported too, if it has a client.
	Acquire func(ctx context.Context, e AcquireEvent) (context.Context, func(AcquireResult))

	// Wait is called, inside Acquire, when the acquisition begins to wait for another
	// contender, and the function that it returns when the wait has ended.
	Wait func(ctx context.Context, e WaitEvent) (context.Context, func(WaitResult))

	// Ahead is called, inside Wait, when the acquisition waits for another contender
	// than before, or learns which acquisition has that contender's node by now.
	Ahead func(ctx context.Context, e WaitEvent)

	// Release is called once for each Lock, when Release is called, and the function
	// that it returns before Release returns.
	Release func(ctx context.Context, e ReleaseEvent) (context.Context, func(ReleaseResult))

	// Operation is called before each request to the ensemble, and the function that
	// it returns when the outcome is known. It takes the request's error.
	Operation func(ctx context.Context, e OperationEvent) (context.Context, func(error))

	// Lost is called once for each Lock that is lost, with the context that Acquire's
	// hook returned. If a session is lost, the Done channels of all its locks are
	// closed before the first Lost is called. The Lost and Session hooks of a session
	// are called one at a time. Close waits until the last of them has returned.
	Lost func(ctx context.Context, e LostEvent)

	// Handover is called when a queue node is passed on to the next holder inside this
	// process, with the context of the acquisition that gets it.
	Handover func(ctx context.Context, e HandoverEvent)

	// Deadlock is called, inside Acquire, when the acquisition was ended because its wait was in a
	// circle of waits: see [DeadlockError].
	Deadlock func(ctx context.Context, e DeadlockEvent)

	// Session is called when a session connects, is suspended, is lost, or is
	// replaced, and after each heartbeat. Events come in order. While the hook is
	// busy, heartbeats are merged, and when many events wait, the oldest is dropped.
	Session func(e SessionEvent)

	// Inject returns the W3C traceparent of ctx, or "" for none. It is written into the queue node,
	// so that waiters can link to the trace of the holder: see Contender.Trace.
	Inject func(ctx context.Context) string

	// Label returns the label of an acquisition that has none from WithLabel, or "" for none. It
	// is called on the goroutine that acquires.
	Label func(ctx context.Context) string
}

// AcquireEvent describes an acquisition that begins.
type AcquireEvent struct {
	// Name is the lock's name; for All, the names joined by commas. An invalid name is
	// cut at 512 bytes, and bytes in it that are not UTF-8 are replaced.
	Name string

	Mode Mode // how the caller wants to hold the lock
	Try  bool // whether the caller does not wait for other contenders

	// Candidacy reports whether the wait and the hold are meant to be long: see [WithCandidacy].
	Candidacy bool
}

// AcquireResult is the result of an acquisition.
type AcquireResult struct {
	Lock   *Lock         // the lock that was acquired; nil if the acquisition failed
	Waited time.Duration // how long the acquisition waited for other contenders; 0 if it did not
	Err    error         // the error that Acquire returns, or nil
}

// WaitEvent describes what an acquisition waits for.
type WaitEvent struct {
	Name string // the lock's name; for All, the names joined by commas
	Mode Mode   // how the caller wants to hold the lock

	Candidacy bool // whether the wait is meant to be long: see [WithCandidacy]

	// Position is how many contenders are ahead: in ZooKeeper's queue, or in the queue
	// of this process if the acquisition waits behind a goroutine of the same process.
	Position int

	// Ahead is the contender that the acquisition waits for. While its Kept is set, it has
	// no Label, Trace and Since.
	Ahead Contender
}

// WaitResult is the result of a wait.
type WaitResult struct {
	Err error // nil if the acquisition has succeeded, and else the reason why the wait ended
}

// ReleaseEvent describes a release that begins.
type ReleaseEvent struct {
	Lock *Lock         // the lock that is released
	Held time.Duration // how long it was held

	// Revoked is when it was revoked; the zero time if it was not, or was acquired without WithRevocable.
	Revoked time.Time
}

// ReleaseResult is the result of a release.
type ReleaseResult struct {
	// Handed reports whether the queue node was kept: it was passed on to the next holder in this
	// process, another Lock still holds it, or the client keeps it for its next acquisition.
	Handed bool

	Err error // the reason in the error that Release returns, or nil
}

// LostEvent describes a loss.
type LostEvent struct {
	Lock *Lock      // the lock that was lost
	Err  *LostError // the cause and the time of the loss
}

// HandoverEvent describes a hand-over inside this process.
type HandoverEvent struct {
	Name string // the lock's name
	Mode Mode   // how the next holder holds the lock
	Turn uint32 // the Turn of the next holder's token
	From string // the traceparent of the acquisition that held the lock until now
	To   string // the traceparent of the acquisition that holds the lock from now on
}

// DeadlockEvent describes a deadlock that was ended.
type DeadlockEvent struct {
	Name string         // the name of the lock that was not acquired; for All, the names joined by commas
	Err  *DeadlockError // the waits of the circle
}

// OperationEvent describes one request to the ensemble.
type OperationEvent struct {
	// Kind is the purpose: enqueue, requeue, release, list, watch, heartbeat, sync, verify, txn,
	// read, parent, recover, mark, reap, register, unregister, or commit for writes of several kinds in one transaction.
	Kind string

	Group   int    // how many callers' writes the transaction has; 1 for requests that are not grouped
	Server  string // the address of the server, "" if it is not known
	Session int64  // the id of the session that sends the request
}

// SessionEvent describes a session's state.
type SessionEvent struct {
	ID     int64  // the session's id
	Server string // the address of the server it is connected to, "" if it is not known

	// State is the session's state. A session that this client has given up is
	// reported as Expired, even if it has not expired at the ensemble yet.
	State driver.State

	// Lease is how much of the proven lease is left; 0 if no lock of the session needs
	// one. That is so if the session neither holds a lock nor waits for one, and if it
	// is at rest: callers only wait on it, each further back than the first in line. A
	// session at rest sends no heartbeats, so it is reported only when its state changes.
	// It proves a lease when one of its waiters wakes.
	Lease time.Duration

	// Silent is why a session is suspended: for how long Server had not answered when the client left it. It
	// is 0 if the connection was lost for another reason, and in all other states.
	Silent time.Duration

	// Forgotten is true if Server was silent on this connection only, and answers on others: the network, or a
	// proxy, has forgotten the connection.
	Forgotten bool

	Err error // the reason why the session has ended; nil if it has not
}

// JoinHooks combines several Hooks into one. Hooks are called in the order of the
// arguments. Each start gets the context that the one before returned, and the functions that
// they return are called in reverse order. Of Inject and Label, the first text that is not empty is used.
func JoinHooks(hooks ...Hooks) Hooks {
	var j Hooks
	for _, h := range hooks {
		i := j // those before h
		j = Hooks{
			Acquire:   joinStart(i.Acquire, h.Acquire),
			Wait:      joinStart(i.Wait, h.Wait),
			Ahead:     joinNotify(i.Ahead, h.Ahead),
			Release:   joinStart(i.Release, h.Release),
			Operation: joinStart(i.Operation, h.Operation),
			Lost:      joinNotify(i.Lost, h.Lost),
			Handover:  joinNotify(i.Handover, h.Handover),
			Deadlock:  joinNotify(i.Deadlock, h.Deadlock),
			Session:   join(i.Session, h.Session, func(e SessionEvent) { i.Session(e); h.Session(e) }),
			Inject:    joinText(i.Inject, h.Inject),
			Label:     joinText(i.Label, h.Label),
		}
	}
	return j
}

func joinStart[E, R any](a, b hook.Starter[E, R]) hook.Starter[E, R] {
	return join(a, b, func(ctx context.Context, e E) (context.Context, func(R)) {
		ctx, endA := hook.Start(a, ctx, e)
		ctx, endB := hook.Start(b, ctx, e)
		return ctx, func(r R) { endB.Call(r); endA.Call(r) }
	})
}

func joinNotify[E any](a, b func(context.Context, E)) func(context.Context, E) {
	return join(a, b, func(ctx context.Context, e E) { a(ctx, e); b(ctx, e) })
}

func joinText(a, b func(context.Context) string) func(context.Context) string {
	return join(a, b, func(ctx context.Context) string {
		if s := a(ctx); s != "" {
			return s
		}
		return b(ctx)
	})
}

// join returns both, a hook that calls a and b, or one of these if the other one is nil.
func join[F any](a, b, both F) F {
	switch {
	case reflect.ValueOf(a).IsNil():
		return b
	case reflect.ValueOf(b).IsNil():
		return a
	}
	return both
}
