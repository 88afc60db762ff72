package faultdriver

import (
	"fmt"
	"time"
)

// action says what a fault does; the comments are on the constructors.
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

// Fault is what goes wrong with one operation. The zero Fault, [None], is that
// nothing does. A Fault is an [Injector] that strikes every operation.
type Fault struct {
	action action

	// err is what fail reports.
	err error

	// gate is what late waits for.
	gate *Gate

	// wait is how long the actions that wait do so.
	wait time.Duration
}

// None is no fault.
func None() Fault { return Fault{} }

// Fail makes the operation fail with err, without being applied: a definite
// answer such as driver.ErrNoAuth. errors.Is finds err in what is returned.
func Fail(err error) Fault { return Fault{action: fail, err: err} }

// NotSent makes the operation fail with driver.ErrNotSent: there was no
// connection to send it on, and the caller may know that.
func NotSent() Fault { return Fault{action: notSent} }

// Drop loses the request: it is not applied, and the caller is told
// driver.ErrConnLoss, which leaves it open.
func Drop() Fault { return Fault{action: drop} }

// LoseReply applies the operation and loses the reply: the caller is told
// driver.ErrConnLoss. Of a Connect, the session that was made is closed again.
func LoseReply() Fault { return Fault{action: loseReply} }

// Late tells the caller driver.ErrConnLoss at once, and has the operation
// applied when gate releases it, if the session has not been closed by then.
// Of a Watch, Connect or Close it is the same as [LoseReply].
func Late(gate *Gate) Fault { return Fault{action: late, gate: gate} }

// LateAfter is Late with the operation applied after d.
func LateAfter(d time.Duration) Fault { return Fault{action: lateAfter, wait: max(d, 0)} }

// Delay holds the request back for d, at least 0, before it is applied. If the caller's
// context ends meanwhile it is not applied, and was not sent.
func Delay(d time.Duration) Fault { return Fault{action: delay, wait: max(d, 0)} }

// DelayReply applies the operation and holds the reply back for d. If the
// caller's context ends meanwhile, the outcome is unknown to it.
func DelayReply(d time.Duration) Fault { return Fault{action: delayReply, wait: max(d, 0)} }

// Hang sends the request into nowhere: it is not applied, and no answer comes
// until the caller's context or the session ends. The outcome is unknown.
func Hang() Fault { return Fault{action: hang} }

// HangReply is Hang, but the operation is applied.
func HangReply() Fault { return Fault{action: hangReply} }

// LoseEvent arms a watch whose event is never delivered; only the end of the
// session is. Of anything but a Watch it is no fault.
func LoseEvent() Fault { return Fault{action: loseEvent} }

// DelayEvent arms a watch whose event is delivered d after it happened. Of
// anything but a Watch it is no fault.
func DelayEvent(d time.Duration) Fault { return Fault{action: delayEvent, wait: max(d, 0)} }

// IsNone reports whether the fault is none.
func (f Fault) IsNone() bool { return f.action == none }

// Inject implements [Injector]: the fault strikes every operation.
func (f Fault) Inject(Op) Fault { return f }

// String names the fault as its constructor is spelt in lower case.
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

// on is the fault as it can strike an operation of that kind: what makes no
// sense of a kind is replaced by what comes nearest.
func (f Fault) on(k Kind) Fault {
	switch f.action {
	case loseEvent, delayEvent:
		if k != Watch {
			return None()
		}
	case late, lateAfter:
		// A watch armed for nobody would be unobservable, a session made for
		// nobody could not be closed by anybody, and Close ends the session
		// whatever strikes.
		if k == Watch || k == Connect || k == Close {
			return LoseReply()
		}
	}
	return f
}

// Error is an error that was injected. It matches the driver's sentinel for
// what the caller may conclude, and, where a context ended, that context's
// error.
type Error struct {
	// Op is the operation that was struck.
	Op Op

	// Fault is what struck it.
	Fault Fault

	// Err is what the operation's caller may conclude.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("faultdriver: %s by %s: %v", e.Op, e.Fault, e.Err)
}

// Unwrap gives errors.Is and errors.As access to the meaning.
func (e *Error) Unwrap() error { return e.Err }
