package tracing

import (
	"context"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/zklock/go-zklock/zklock"
)

// Hooks returns hooks that make spans and metrics of what a Client does. Pass them to
// zklock.WithHooks. They start no goroutines and need not be closed. Several Clients may
// use the same Hooks.
func Hooks(opts ...Option) zklock.Hooks {
	cfg := newConfig(opts)
	o := &observer{cfg: cfg, tracer: cfg.tracer(), instruments: newInstruments(cfg.meter())}
	_, o.mute = o.tracer.(noop.Tracer)
	o.instruments.sessions.Add(context.Background(), 0) // see measurement.begin
	o.instruments.reconnects.Add(context.Background(), 0)
	o.instruments.silent.Add(context.Background(), 0)
	kind := trace.WithSpanKind(trace.SpanKindClient)
	for mode := range o.modeStart {
		is := AttrMode.String(zklock.Mode(mode).String())
		for i, try := range []bool{false, true} {
			o.acquireStart[mode][i] = []trace.SpanStartOption{kind, trace.WithAttributes(is, AttrTry.Bool(try))}
		}
		o.modeStart[mode] = []trace.SpanStartOption{kind, trace.WithAttributes(is)}
	}
	o.releaseStart = []trace.SpanStartOption{kind}
	return zklock.Hooks{
		Acquire:   o.acquire,
		Wait:      o.waitFor,
		Ahead:     o.ahead,
		Release:   o.release,
		Operation: o.operation,
		Lost:      o.lost,
		Handover:  o.handover,
		Deadlock:  o.deadlock,
		Session:   o.session,
		Inject:    inject,
	}
}

// observer is the state that the hooks of one call of Hooks share.
type observer struct {
	cfg         *config
	tracer      trace.Tracer
	instruments *instruments
	series      seriesCache
	grants      grants
	releases    sync.Map // ids of an acquire span -> its release span, until that ends
	sessions    sessions

	// mute means that the tracer never records anything.
	mute bool

	// recorded is set when the first span is recorded. Before that, contexts are not
	// searched for one.
	recorded atomic.Bool

	// The options for starting spans. Samplers see their attributes, so they are needed before
	// it is known whether a span is recorded. They are made once, to save the allocations.
	acquireStart [modes][2][]trace.SpanStartOption
	modeStart    [modes][]trace.SpanStartOption
	releaseStart []trace.SpanStartOption
}

// modes is more than the greatest zklock.Mode, also of versions of package zklock with more kinds of locks:
// no client has more than 16.
const modes = 16

// start starts a span. A tracer that never records anything (o.mute) is not called. inject then
// uses the span in ctx, as it would with that tracer's span.
func (o *observer) start(ctx context.Context, name string, opts []trace.SpanStartOption) (context.Context, trace.Span) {
	if o.mute {
		return ctx, noop.Span{}
	}
	return o.tracer.Start(ctx, name, opts...)
}

// spanName returns the attribute that shows a lock's name on spans, and whether it is
// shown.
func (o *observer) spanName(name string) (attribute.KeyValue, bool) {
	if f := o.cfg.spanName; f != nil {
		name = f(name)
	}
	return AttrName.String(name), name != ""
}

// modeAttributes returns attributes with a lock's mode and, if that is shown, its name.
func (o *observer) modeAttributes(mode, name string) []attribute.KeyValue {
	kvs := []attribute.KeyValue{AttrMode.String(mode)}
	if kv, ok := o.spanName(name); ok {
		kvs = append(kvs, kv)
	}
	return kvs
}

// nameSpan sets a lock's name on a recorded span, if it is shown.
func (o *observer) nameSpan(span trace.Span, name string) {
	if kv, ok := o.spanName(name); ok {
		span.SetAttributes(kv)
	}
}

// metricName returns a lock's name as metrics show it; "" if they do not.
func (o *observer) metricName(name string) string {
	if f := o.cfg.metricName; f != nil {
		return f(name)
	}
	return ""
}

// fail marks a span as failed. The texts of errors contain the lock's name or its
// znode, so they are shown only if names are shown unchanged.
func (o *observer) fail(span trace.Span, err error, errorType string) {
	text := errorType
	if o.cfg.spanName == nil {
		text = err.Error()
	}
	span.SetAttributes(AttrErrorType.String(errorType))
	span.SetStatus(codes.Error, text)
}
