package faultdriver

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Toggle is an [Injector] that can be switched on and off while it is in use: off while a
// client starts, for example, and off again while it recovers. Make one with [NewToggle]. It
// is safe for concurrent use if its injector is.
type Toggle struct {
	inj Injector
	on  atomic.Bool
}

// NewToggle returns a Toggle for inj, which is off at first.
func NewToggle(inj Injector) *Toggle { return &Toggle{inj: inj} }

// On makes inj decide about the operations that begin from now on.
func (t *Toggle) On() { t.on.Store(true) }

// Off lets the operations that begin from now on pass, without asking inj.
func (t *Toggle) Off() { t.on.Store(false) }

// Inject implements [Injector].
func (t *Toggle) Inject(op Op) Fault {
	if !t.on.Load() {
		return None()
	}
	return t.inj.Inject(op)
}

// String implements [Injector].
func (t *Toggle) String() string { return "toggle(" + t.inj.String() + ")" }

// Counter is an [Injector] that counts the faults of another one, so that a test can check
// that its faults did strike. Make one with [NewCounter]. It is safe for concurrent use if its
// injector is.
type Counter struct {
	inj     Injector
	seen    atomic.Int64
	strikes atomic.Int64
}

// NewCounter returns a Counter for inj.
func NewCounter(inj Injector) *Counter { return &Counter{inj: inj} }

// Seen returns for how many operations inj was asked.
func (c *Counter) Seen() int { return int(c.seen.Load()) }

// Struck returns for how many operations inj has returned a fault that could strike.
func (c *Counter) Struck() int { return int(c.strikes.Load()) }

// Inject implements [Injector].
func (c *Counter) Inject(op Op) Fault {
	c.seen.Add(1)
	fault := c.inj.Inject(op)
	if !fault.on(op.Kind).IsNone() {
		c.strikes.Add(1)
	}
	return fault
}

// String implements [Injector].
func (c *Counter) String() string { return "counter(" + c.inj.String() + ")" }

// Strike is one fault that struck an operation.
type Strike struct {
	// Op is the operation that was struck.
	Op Op

	// Fault is the fault that struck it.
	Fault Fault
}

// String describes the strike in one line.
func (s Strike) String() string { return s.Op.String() + ": " + s.Fault.String() }

// Log is an [Injector] that records the faults of another one. Make one with [NewLog], and
// print its Text when a test has failed. It is safe for concurrent use if its injector is.
type Log struct {
	inj Injector

	mu      sync.Mutex
	strikes []Strike // guarded by mu
}

// NewLog returns a Log for inj.
func NewLog(inj Injector) *Log { return &Log{inj: inj} }

// Strikes returns the faults that have struck so far, sorted by the start of their operations.
// The slice belongs to the caller.
func (l *Log) Strikes() []Strike {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Strike(nil), l.strikes...)
}

// Text returns the injector's description, and then one line for each fault that has struck.
func (l *Log) Text() string {
	var b strings.Builder
	strikes := l.Strikes()
	fmt.Fprintf(&b, "%s: %d struck\n", l.inj, len(strikes))
	for _, s := range strikes {
		b.WriteString("\t" + s.String() + "\n")
	}
	return b.String()
}

// Inject implements [Injector].
func (l *Log) Inject(op Op) Fault {
	fault := l.inj.Inject(op)
	if !fault.on(op.Kind).IsNone() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.strikes = append(l.strikes, Strike{op, fault})
	}
	return fault
}

// String implements [Injector].
func (l *Log) String() string { return "log(" + l.inj.String() + ")" }
