package faultdriver

import (
	"fmt"
	"time"
)

// action says what a fault does. The constructors below describe each of them.
type action uint8

const (
	none action = iota
	fail
	notSent
	drop
	loseReply
	late
	lateAfter
	delay
	delayReply
	hang
	hangReply
	loseEvent
	delayEvent
)

// Fault is what goes wrong with one operation. With the zero Fault, which is [None], nothing
// goes wrong. A Fault is also an [Injector]: one that strikes every operation.
type Fault struct {
	action action

	// err is the error that fail returns.
	err error

	// gate holds back the operations of late.
	gate *Gate

	// wait is the duration of the actions that wait.
	wait time.Duration
}

// None returns the zero Fault: nothing goes wrong.
func None() Fault { return Fault{} }

// Fail makes the operation fail with err, without applying it: a definite answer, such as
// driver.ErrNoAuth. The error that the caller gets matches err.
func Fail(err error) Fault { return Fault{action: fail, err: err} }

// NotSent makes the operation fail with driver.ErrNotSent, without applying it: there was no
// connection, and the caller knows that.
func NotSent() Fault { return Fault{action: notSent} }

// Drop loses the request: the operation is not applied, and the caller gets driver.ErrConnLoss,
// so it cannot know that.
func Drop() Fault { return Fault{action: drop} }

// LoseReply applies the operation and loses the reply: the caller gets driver.ErrConnLoss.
// If it strikes a Connect, the session that was made is closed again.
func LoseReply() Fault { return Fault{action: loseReply} }

// Late returns driver.ErrConnLoss to the caller at once. The operation is applied when gate
// releases it, if the session is still open by then. If Late strikes an operation that arms a
// watch, a Connect or a Close, it does the same as [LoseReply].
func Late(gate *Gate) Fault { return Fault{action: late, gate: gate} }

// LateAfter does the same as Late, but applies the operation after d.
func LateAfter(d time.Duration) Fault { return Fault{action: lateAfter, wait: max(d, 0)} }

// Delay waits for d before the request is sent. A negative d is 0. If the caller's context ends
// before, the operation is not applied, and the caller gets driver.ErrNotSent.
func Delay(d time.Duration) Fault { return Fault{action: delay, wait: max(d, 0)} }

// DelayReply applies the operation and holds the reply back for d. If the caller's context ends
// before, the caller gets driver.ErrConnLoss.
func DelayReply(d time.Duration) Fault { return Fault{action: delayReply, wait: max(d, 0)} }

// Hang loses the request: the operation is not applied. The caller waits until its context or
// the session ends, and then gets driver.ErrConnLoss.
func Hang() Fault { return Fault{action: hang} }

// HangReply does the same as Hang, but applies the operation.
func HangReply() Fault { return Fault{action: hangReply} }

// LoseEvent arms a watch whose event is never delivered; only the end of the session is. It
// has no effect on operations that arm no watch: see [Kind.Watches]. Like DelayEvent it is a fault of a driver,
// and not of a network or a server: ZooKeeper sends events and replies in one order, and a
// lock may rely on that order. So strike watches of other clients' queue nodes with it, which only delays
// grants, and not those of locks' znodes and of the client's own nodes.
func LoseEvent() Fault { return Fault{action: loseEvent} }

// DelayEvent arms a watch whose event is delivered d after it happened. It has no effect on
// operations that arm no watch.
func DelayEvent(d time.Duration) Fault { return Fault{action: delayEvent, wait: max(d, 0)} }

// IsNone reports whether the fault is [None].
func (f Fault) IsNone() bool { return f.action == none }

// Inject implements [Injector]: the fault strikes every operation.
func (f Fault) Inject(Op) Fault { return f }

// String returns the name of the fault's constructor in lower case, with its argument.
func (f Fault) String() string {
	switch f.action {
	case none:
		return "none"
	case fail:
		return fmt.Sprintf("fail(%q)", f.err.Error())
	case notSent:
		return "not-sent"
	case drop:
		return "drop"
	case loseReply:
		return "lose-reply"
	case late:
		return "late"
	case lateAfter:
		return fmt.Sprintf("late-after(%v)", f.wait)
	case delay:
		return fmt.Sprintf("delay(%v)", f.wait)
	case delayReply:
		return fmt.Sprintf("delay-reply(%v)", f.wait)
	case hang:
		return "hang"
	case hangReply:
		return "hang-reply"
	case loseEvent:
		return "lose-event"
	case delayEvent:
		return fmt.Sprintf("delay-event(%v)", f.wait)
	}
	return fmt.Sprintf("fault(%d)", f.action)
}

// on returns the fault that strikes an operation of that kind. If f makes no sense for the
// kind, that is the most similar fault, or none.
func (f Fault) on(k Kind) Fault {
	switch f.action {
	case loseEvent, delayEvent:
		if !k.Watches() {
			return None()
		}
	case late, lateAfter:
		// A watch that is armed after its caller has gone could not be observed, and a
		// session that is made after that could not be closed. A Close ends the session
		// whatever the fault is.
		if k.Watches() || k == Connect || k == Close {
			return LoseReply()
		}
	}
	return f
}

// struckError is an error that a fault has caused. It matches the error of package driver that says
// what the caller may conclude. If the caller's context has ended, it also matches the
// context's error.
type struckError struct {
	// Op is the operation that was struck.
	Op Op

	// Fault is the fault that struck it.
	Fault Fault

	// Err says what the operation's caller may conclude.
	Err error
}

// Error implements error.
func (e *struckError) Error() string {
	return fmt.Sprintf("faultdriver: %s by %s: %v", e.Op, e.Fault, e.Err)
}

// Unwrap returns Err.
func (e *struckError) Unwrap() error { return e.Err }
