package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/zklock/go-zklock/zklock"
)

// acquisition is one call of Acquire that something is recorded about. The
// context of the Acquire hook carries it, so that what happens during the
// acquisition, and a loss long after it, finds it.
type acquisition struct {
	o       *observer
	span    trace.Span // zklock.acquire
	caller  trace.Span // the span that the acquisition was made in
	mode    string
	name    string // as metrics have it
	started time.Time
	server  server // of span

	mu     sync.Mutex
	wait   trace.Span        // guarded by mu; zklock.wait, while it lasts
	linked trace.SpanContext // guarded by mu; the newest link of wait
	grant  *grant            // guarded by mu; set when the acquisition has succeeded
	lost   *zklock.LostEvent // guarded by mu; a loss before that
}

// acquisitionKey is the context key of an observer's acquisition. Clients may
// have several Hooks, and each of them finds its own.
type acquisitionKey struct{ *observer }

// acquisition finds the acquisition that ctx belongs to; nil if nothing is
// recorded about it.
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
		return inner, nil // with the span, be it to pass its parent's trace on
	}
	a := &acquisition{o: o, span: span, caller: trace.SpanFromContext(ctx), mode: e.Mode.String(), name: o.metricName(e.Name), started: time.Now(), server: server{span: span}}
	if recording {
		o.recorded.Store(true)
		o.nameSpan(span, e.Name)
	}
	return context.WithValue(inner, acquisitionKey{o}, a), func(r zklock.AcquireResult) { a.end(ctx, inner, e, r) }
}

// end ends the acquisition. outer is the caller's context, inner the one with
// the span.
func (a *acquisition) end(outer, inner context.Context, e zklock.AcquireEvent, r zklock.AcquireResult) {
	o, result := a.o, outcome(r.Err)
	s := series{mode: a.mode, outcome: result, name: a.name}
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

// succeed begins the grant. A loss may have come before: it is told at the
// moment of the loss, and the end of the acquisition when that has returned.
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

// lose is told of the loss of a handle that the acquisition got. One that was
// lost before the acquisition was over, and that it did not return, is nothing
// that anybody held.
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
		a.mu.Lock()
		a.wait = span
		a.linkLocked(e.Ahead.Trace)
		a.mu.Unlock()
	}
	started := time.Now()
	waiting := o.series.get(series{mode: a.mode, name: a.name}).add
	o.instruments.waiting.Add(ctx, 1, waiting...)
	return inner, func(r zklock.WaitResult) {
		o.instruments.waiting.Add(ctx, -1, waiting...)
		s := series{mode: a.mode, outcome: outcome(r.Err), name: a.name}
		if failed(s.outcome) {
			s.errorType = errorType(r.Err)
		}
		o.instruments.wait.Record(inner, time.Since(started).Seconds(), o.series.get(s).record...)
		if span == nil {
			return
		}
		span.SetAttributes(AttrOutcome.String(s.outcome))
		if s.errorType != "" {
			o.fail(span, r.Err, s.errorType)
		}
		a.mu.Lock()
		a.wait = nil
		a.mu.Unlock()
		span.End()
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

// handover is the Handover hook. ctx is that of the request that got the place.
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

// linkLocked links the wait span to the trace of whom it waits for, unless that
// is where its newest link leads to. The one waited for can be seen twice, in
// the local queue and in the ensemble's.
func (a *acquisition) linkLocked(parent string) {
	link, ok := linkTo(parent)
	if !ok || link.SpanContext.Equal(a.linked) {
		return
	}
	a.linked = link.SpanContext
	a.wait.AddLink(link)
}

// aheadAttributes tell whom an acquisition waits for.
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
