package tracing

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/zklock/go-zklock/zklock"
)

// acquisition is one call of Acquire that is recorded. The context that the Acquire hook
// returns carries it. So the hooks that are called during the acquisition find it, and so does
// the Lost hook long after.
type acquisition struct {
	o       *observer
	span    trace.Span // zklock.acquire
	caller  trace.Span // the span around the call of Acquire
	mode    string
	name    string // as metrics show it
	started time.Time
	server  server // what span shows about the server

	candidacy bool // it waits and holds for long on purpose

	mu     sync.Mutex
	wait   trace.Span        // guarded by mu; zklock.wait, until it ends
	linked trace.SpanContext // guarded by mu; the newest link of wait
	grant  *grant            // guarded by mu; set when the acquisition has succeeded
	lost   *zklock.LostEvent // guarded by mu; a loss before grant was set
}

// acquisitionKey is the context key of an observer's acquisition. A Client may have
// several Hooks, and each of them finds its own acquisition.
type acquisitionKey struct{ *observer }

// acquisition returns the acquisition that ctx carries; nil if nothing is recorded
// about it.
func (o *observer) acquisition(ctx context.Context) *acquisition {
	a, _ := ctx.Value(acquisitionKey{o}).(*acquisition)
	return a
}

// acquire is the Acquire hook.
func (o *observer) acquire(ctx context.Context, e zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
	try := 0
	if e.Try {
		try = 1
	}
	inner, span := o.start(ctx, SpanAcquire, o.acquireStart[e.Mode][try])
	recording := span.IsRecording()
	if !recording && !o.instruments.acquisitions(ctx) {
		return inner, nil // with the span, which passes on its parent's trace
	}
	a := &acquisition{o: o, span: span, caller: trace.SpanFromContext(ctx), mode: e.Mode.String(), name: o.metricName(e.Name), started: time.Now(), server: server{span: span}, candidacy: e.Candidacy}
	if recording {
		o.recorded.Store(true)
		o.nameSpan(span, e.Name)
		markSpan(span, e.Candidacy)
	}
	return context.WithValue(inner, acquisitionKey{o}, a), func(r zklock.AcquireResult) { a.end(ctx, inner, e, r) }
}

// end ends the acquisition. outer is the caller's context; inner has the span.
func (a *acquisition) end(outer, inner context.Context, e zklock.AcquireEvent, r zklock.AcquireResult) {
	o, result := a.o, outcome(r.Err)
	s := series{mode: a.mode, outcome: result, name: a.name, candidacy: a.candidacy}
	if failed(result) {
		s.errorType = errorType(r.Err)
	}
	if a.span.IsRecording() {
		a.span.SetAttributes(AttrOutcome.String(result))
		if r.Lock != nil {
			a.span.SetAttributes(AttrToken.String(r.Lock.Token().String()))
		}
		if s.errorType != "" {
			o.fail(a.span, r.Err, s.errorType)
		}
	}
	o.instruments.acquire.Record(inner, time.Since(a.started).Seconds(), o.series.get(s).record...)
	a.span.End()
	if r.Lock != nil {
		a.succeed(outer, e, r.Lock)
	}
}

// succeed begins the grant. The loss may have been reported before: the Lost hook is
// called at the moment of the loss, and the end of the Acquire hook only when Acquire
// returns.
func (a *acquisition) succeed(ctx context.Context, e zklock.AcquireEvent, lock *zklock.Lock) {
	g := a.o.begin(ctx, a, e, lock)
	a.mu.Lock()
	a.grant = g
	lost := a.lost
	a.lost = nil
	a.mu.Unlock()
	if lost != nil && lost.Lock == lock {
		g.lose(ctx, *lost)
	}
}

// lost is the Lost hook.
func (o *observer) lost(ctx context.Context, e zklock.LostEvent) {
	if a := o.acquisition(ctx); a != nil {
		a.lose(ctx, e)
	}
}

// lose records the loss of a handle that the acquisition got. Before the end of the
// acquisition the loss is only remembered: if Acquire does not return that handle, no
// caller has held it.
func (a *acquisition) lose(ctx context.Context, e zklock.LostEvent) {
	a.mu.Lock()
	g := a.grant
	if g == nil {
		a.lost = &e
	}
	a.mu.Unlock()
	if g != nil {
		g.lose(ctx, e)
	}
}

// waitFor is the Wait hook.
func (o *observer) waitFor(ctx context.Context, e zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
	a := o.acquisition(ctx)
	if a == nil {
		return ctx, nil
	}
	inner, span := ctx, trace.Span(nil)
	if a.span.IsRecording() {
		inner, span = o.start(ctx, SpanWait, o.modeStart[e.Mode])
		span.SetAttributes(aheadAttributes(e)...)
		o.nameSpan(span, e.Name)
		markSpan(span, a.candidacy)
		a.mu.Lock()
		a.wait = span
		a.linkLocked(e.Ahead.Trace)
		a.mu.Unlock()
	}
	started := time.Now()
	m := o.series.get(series{mode: a.mode, name: a.name, candidacy: a.candidacy})
	m.begin(ctx, o.instruments.deadlocks)
	waiting := m.add
	o.instruments.waiting.Add(ctx, 1, waiting...)
	return inner, func(r zklock.WaitResult) {
		o.instruments.waiting.Add(ctx, -1, waiting...)
		s := series{mode: a.mode, outcome: outcome(r.Err), name: a.name}
		if failed(s.outcome) {
			s.errorType = errorType(r.Err)
		}
		if !a.candidacy { // it waits on purpose
			o.instruments.wait.Record(inner, time.Since(started).Seconds(), o.series.get(s).record...)
		}
		if span == nil {
			return
		}
		span.SetAttributes(AttrOutcome.String(s.outcome))
		if s.errorType != "" {
			o.fail(span, r.Err, s.errorType)
		}
		a.mu.Lock()
		a.linkDeadlockLocked(r.Err)
		a.wait = nil
		a.mu.Unlock()
		span.End()
	}
}

// linkDeadlockLocked links the wait span to the other waits of the deadlock that has ended it, if one has.
func (a *acquisition) linkDeadlockLocked(err error) {
	var d *zklock.DeadlockError
	if !errors.As(err, &d) || len(d.Cycle) == 0 {
		return
	}
	for _, l := range d.Cycle[1:] { // the first is this wait
		a.linkLocked(l.Trace)
	}
	a.wait.AddEvent(EventDeadlock, trace.WithAttributes(AttrDeadlockWaits.Int(len(d.Cycle))))
}

// deadlock is the Deadlock hook. The wait's span has ended by then.
func (o *observer) deadlock(ctx context.Context, _ zklock.DeadlockEvent) {
	if a := o.acquisition(ctx); a != nil {
		o.instruments.deadlocks.Add(ctx, 1, o.series.get(series{mode: a.mode, name: a.name, candidacy: a.candidacy}).add...)
	}
}

// ahead is the Ahead hook.
func (o *observer) ahead(ctx context.Context, e zklock.WaitEvent) {
	a := o.acquisition(ctx)
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wait != nil {
		a.linkLocked(e.Ahead.Trace)
		a.wait.AddEvent(EventAhead, trace.WithAttributes(aheadAttributes(e)...))
	}
}

// handover is the Handover hook. ctx is the context of the request that got the place.
func (o *observer) handover(ctx context.Context, e zklock.HandoverEvent) {
	s := series{mode: e.Mode.String(), name: o.metricName(e.Name)}
	if o.instruments.handovers.Enabled(ctx) {
		o.instruments.handovers.Add(ctx, 1, o.series.get(s).add...)
	}
	if o.recorded.Load() {
		o.handOver(e)
	}
	a := o.acquisition(ctx)
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wait != nil {
		a.linkLocked(e.From)
		a.wait.AddEvent(EventHandover)
	}
}

// linkLocked links the wait span to the trace of the contender ahead, if its newest link does
// not lead there. The same contender can be reported twice: by the queue in memory and by the
// ensemble's.
func (a *acquisition) linkLocked(parent string) {
	link, ok := linkTo(parent)
	if !ok || link.SpanContext.Equal(a.linked) {
		return
	}
	a.linked = link.SpanContext
	a.wait.AddLink(link)
}

// markSpan marks a recorded span of a candidacy.
func markSpan(span trace.Span, candidacy bool) {
	if candidacy {
		span.SetAttributes(AttrCandidacy.Bool(true))
	}
}

// aheadAttributes returns attributes that describe the contender ahead.
func aheadAttributes(e zklock.WaitEvent) []attribute.KeyValue {
	kvs := []attribute.KeyValue{AttrPosition.Int(e.Position)}
	if e.Ahead.Node != "" {
		kvs = append(kvs, AttrAheadNode.String(e.Ahead.Node))
	}
	if e.Ahead.Host != "" {
		kvs = append(kvs, AttrAheadHost.String(e.Ahead.Host))
	}
	if e.Ahead.PID != 0 {
		kvs = append(kvs, AttrAheadPID.Int(e.Ahead.PID))
	}
	return kvs
}
