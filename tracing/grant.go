package tracing

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/zklock/go-zklock/zklock"
)

// grant is a held lock, from the end of its acquisition to its release or loss, whichever is
// first.
type grant struct {
	o       *observer
	acquire trace.SpanContext // of the acquire span
	caller  trace.Span        // the span around the call of Acquire
	hold    trace.Span        // nil without WithHoldSpan, or if it is not recorded
	mode    string            // at the acquisition: a Downgrade must not unbalance the gauge
	name    string            // as metrics show it
	since   time.Time

	candidacy bool // it is held for long on purpose

	cleanup runtime.Cleanup // of its entry in grants

	// mu is held while a loss is recorded, which does not wait for anything. The Lost
	// hook is called after the lock's contexts have ended. So the application may
	// release the lock and end its span at the same time, and must not do so before the
	// loss is recorded.
	mu   sync.Mutex
	over bool // guarded by mu
}

// begin makes the grant of an acquisition that succeeded. ctx is the caller's context.
func (o *observer) begin(ctx context.Context, a *acquisition, e zklock.AcquireEvent, lock *zklock.Lock) *grant {
	g := &grant{o: o, acquire: a.span.SpanContext(), caller: a.caller, mode: a.mode, name: a.name, since: time.Now(), candidacy: a.candidacy}
	if o.cfg.holdSpan {
		_, span := o.start(ctx, SpanHold, o.modeStart[e.Mode])
		if span.IsRecording() {
			span.AddLink(trace.Link{SpanContext: g.acquire})
			span.SetAttributes(AttrToken.String(lock.Token().String()))
			o.nameSpan(span, e.Name)
			markSpan(span, g.candidacy)
			g.hold = span
		}
	}
	o.instruments.held.Add(ctx, 1, o.series.get(g.series()).add...)
	lost := g.series()
	lost.errorType = reasonLost
	o.series.get(lost).begin(ctx, o.instruments.lost)
	o.grants.put(lock, g)
	return g
}

// series returns what all measurements of the grant have in common.
func (g *grant) series() series { return series{mode: g.mode, name: g.name, candidacy: g.candidacy} }

// endLocked ends the grant. It returns false if the grant has ended before: a release
// and a loss may come at the same time.
func (g *grant) endLocked(ctx context.Context, reason string, held time.Duration) bool {
	if g.over {
		return false
	}
	g.over = true
	i := g.o.instruments
	s := g.series()
	i.held.Add(ctx, -1, g.o.series.get(s).add...)
	s.reason = reason
	i.hold.Record(ctx, held.Seconds(), g.o.series.get(s).record...)
	return true
}

// lose ends the grant with a loss, and records the loss on the request's span.
func (g *grant) lose(ctx context.Context, e zklock.LostEvent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.endLocked(ctx, reasonLost, time.Since(g.since)) {
		return
	}
	s := g.series()
	s.errorType = lossType(e.Err)
	g.o.instruments.lost.Add(ctx, 1, g.o.series.get(s).add...)
	g.report(g.caller, e)
	if g.hold != nil {
		g.report(g.hold, e)
		g.hold.End()
	}
}

// report records a loss on a span. The request's span may have ended, since a lock may be
// held for longer than the request that acquired it.
func (g *grant) report(span trace.Span, e zklock.LostEvent) {
	if !span.IsRecording() {
		return
	}
	kvs := append(g.o.modeAttributes(g.mode, e.Lock.Name()), AttrToken.String(e.Lock.Token().String()), AttrErrorType.String(lossType(e.Err)))
	span.AddEvent(EventLost, trace.WithAttributes(kvs...))
	text := reasonLost
	if g.o.cfg.spanName == nil {
		text = e.Err.Error()
	}
	span.SetStatus(codes.Error, text)
}

// release is the Release hook.
func (o *observer) release(ctx context.Context, e zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
	g := o.grants.take(e.Lock)
	if g != nil {
		g.stop(ctx, e)
	}
	inner, span := o.start(ctx, SpanRelease, o.releaseStart)
	recording := span.IsRecording()
	if !recording && g == nil {
		return inner, nil
	}
	if recording {
		inner = o.startRelease(inner, span, g, e)
	}
	return inner, func(r zklock.ReleaseResult) {
		if g != nil {
			g.release(inner, e, r)
		}
		if !recording {
			return
		}
		if g != nil {
			o.releases.Delete(idsOf(g.acquire))
		}
		span.SetAttributes(AttrHanded.Bool(r.Handed))
		if r.Err != nil {
			o.fail(span, r.Err, errorType(r.Err))
		}
		span.End()
	}
}

// startRelease sets the attributes and links of a recorded release span.
func (o *observer) startRelease(ctx context.Context, span trace.Span, g *grant, e zklock.ReleaseEvent) context.Context {
	o.recorded.Store(true)
	mode := e.Lock.Mode().String()
	if g != nil {
		mode = g.mode
		if g.acquire.IsValid() {
			span.AddLink(trace.Link{SpanContext: g.acquire})
			o.releases.Store(idsOf(g.acquire), span)
		}
	}
	span.SetAttributes(append(o.modeAttributes(mode, e.Lock.Name()), AttrToken.String(e.Lock.Token().String()))...)
	return context.WithValue(ctx, releaseKey{o}, &server{span: span})
}

// ids are the two ids of a span in a traceparent.
type ids struct {
	trace trace.TraceID
	span  trace.SpanID
}

func idsOf(sc trace.SpanContext) ids { return ids{sc.TraceID(), sc.SpanID()} }

// handOver links the release span of the place's former holder to the acquire span of
// the next. Waiters of other processes can read only which request created the place.
// From there these links lead to its current holder.
func (o *observer) handOver(e zklock.HandoverEvent) {
	from, ok := linkTo(e.From)
	if !ok {
		return
	}
	span, ok := o.releases.Load(idsOf(from.SpanContext))
	if !ok {
		return
	}
	if to, ok := linkTo(e.To); ok {
		span.(trace.Span).AddLink(to)
	}
}

// stop records how long the work under a lock went on after it was asked to stop. A loss is the
// graver of two reasons.
func (g *grant) stop(ctx context.Context, e zklock.ReleaseEvent) {
	s, asked := g.series(), e.Revoked
	s.errorType = reasonRevoked
	var lost *zklock.LostError
	if errors.As(e.Lock.Err(), &lost) {
		s.errorType, asked = lossType(lost), lost.At
	}
	if !asked.IsZero() {
		g.o.instruments.stop.Record(ctx, max(0, time.Since(asked)).Seconds(), g.o.series.get(s).record...)
	}
}

// release ends the grant with its release. If the release finds that the lock was lost,
// it records the loss: the Lost hook may be called later, or not at all.
func (g *grant) release(ctx context.Context, e zklock.ReleaseEvent, r zklock.ReleaseResult) {
	var lost *zklock.LostError
	if errors.As(r.Err, &lost) {
		g.lose(ctx, zklock.LostEvent{Lock: e.Lock, Err: lost})
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.endLocked(ctx, reasonReleased, e.Held) && g.hold != nil {
		g.hold.End()
	}
}

// grants finds the grant of a handle that is released, because the Release hook does
// not get the acquisition's context. A lost handle need not be released. So the entries
// do not keep handles alive, and are removed with them.
type grants struct {
	m sync.Map // weak.Pointer[zklock.Lock] -> *grant
	n atomic.Int64
}

func (gs *grants) put(lock *zklock.Lock, g *grant) {
	key := weak.Make(lock)
	gs.n.Add(1)
	gs.m.Store(key, g)
	g.cleanup = runtime.AddCleanup(lock, func(key weak.Pointer[zklock.Lock]) { gs.delete(key) }, key)
}

// take removes and returns the grant of a handle; nil if nothing is recorded about it.
func (gs *grants) take(lock *zklock.Lock) *grant {
	if gs.n.Load() == 0 {
		return nil
	}
	g := gs.delete(weak.Make(lock))
	if g != nil {
		g.cleanup.Stop()
	}
	return g
}

func (gs *grants) delete(key weak.Pointer[zklock.Lock]) *grant {
	v, ok := gs.m.LoadAndDelete(key)
	if !ok {
		return nil
	}
	gs.n.Add(-1)
	return v.(*grant)
}
