package faultdriver

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// Toggle is an [Injector] that can be switched on and off while it is in use:
// to let a client come up undisturbed, and to let it recover. Make one with
// [NewToggle].
type Toggle struct {
	inj Injector
	on  atomic.Bool
}

// NewToggle makes a Toggle for inj, which is off at first.
func NewToggle(inj Injector) *Toggle { return &Toggle{inj: inj} }

// On lets inj see the operations begun from now on.
func (t *Toggle) On() { t.on.Store(true) }

// Off keeps the operations begun from now on from inj.
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

// Counter is an [Injector] that counts what another one injects, so that a
// test can demand that its faults did strike. Make one with [NewCounter].
type Counter struct {
	inj     Injector
	seen    atomic.Int64
	strikes atomic.Int64
}

// NewCounter makes a Counter for inj.
func NewCounter(inj Injector) *Counter { return &Counter{inj: inj} }

// Seen is how many operations inj was shown.
func (c *Counter) Seen() int { return int(c.seen.Load()) }

// Struck is how many of them it had a fault for.
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

// Strike is one fault that struck.
type Strike struct {
	// Op is the operation struck.
	Op Op

	// Fault is what struck it.
	Fault Fault
}

// String describes the strike in one line.
func (s Strike) String() string { return s.Op.String() + ": " + s.Fault.String() }

// Log is an [Injector] that keeps a record of what another one injects. Make
// one with [NewLog], and print it when a test has failed.
type Log struct {
	inj Injector

	mu      sync.Mutex
	strikes []Strike // guarded by mu
}

// NewLog makes a Log for inj.
func NewLog(inj Injector) *Log { return &Log{inj: inj} }

// Strikes returns what struck so far, in the order in which the operations
// were begun. The slice belongs to the caller.
func (l *Log) Strikes() []Strike {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Strike(nil), l.strikes...)
}

// Text lists what struck, one line each, under the injector's own description.
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
