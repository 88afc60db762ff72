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

// Hooks returns hooks that make spans and metrics of what a Client does; give
// them to zklock.WithHooks. They start no goroutine and hold nothing that has
// to be closed. One Hooks may serve several Clients.
func Hooks(opts ...Option) zklock.Hooks {
	cfg := newConfig(opts)
	o := &observer{cfg: cfg, tracer: cfg.tracer(), instruments: newInstruments(cfg.meter())}
	_, o.mute = o.tracer.(noop.Tracer)
	o.instruments.sessions.Add(context.Background(), 0) // see measurement.begin
	o.instruments.reconnects.Add(context.Background(), 0)
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
		Session:   o.session,
		Inject:    inject,
	}
}

// observer is what the hooks of one Hooks share.
type observer struct {
	cfg         *config
	tracer      trace.Tracer
	instruments *instruments
	series      seriesCache
	grants      grants
	releases    sync.Map // of ids of an acquire span to the release span under way
	sessions    sessions

	// mute says that the tracer is known to record nothing, ever.
	mute bool

	// recorded is set by the first span that is recorded. Until then contexts
	// are not searched for one.
	recorded atomic.Bool

	// Attributes that samplers get to see; made once, since they are made
	// before it is known whether a span is recorded.
	acquireStart [modes][2][]trace.SpanStartOption
	modeStart    [modes][]trace.SpanStartOption
	releaseStart []trace.SpanStartOption
}

// modes is one more than the greatest zklock.Mode.
const modes = int(zklock.Permit) + 1

// start starts a span. A mute tracer is not asked: what others get to see is
// the span in ctx, as it would be with the tracer's.
func (o *observer) start(ctx context.Context, name string, opts []trace.SpanStartOption) (context.Context, trace.Span) {
	if o.mute {
		return ctx, noop.Span{}
	}
	return o.tracer.Start(ctx, name, opts...)
}

// spanName is the attribute that shows a lock's name on spans, if it is shown.
func (o *observer) spanName(name string) (attribute.KeyValue, bool) {
	if f := o.cfg.spanName; f != nil {
		name = f(name)
	}
	return AttrName.String(name), name != ""
}

// modeAttributes describe a lock by its mode and, if it is shown, its name.
func (o *observer) modeAttributes(mode, name string) []attribute.KeyValue {
	kvs := []attribute.KeyValue{AttrMode.String(mode)}
	if kv, ok := o.spanName(name); ok {
		kvs = append(kvs, kv)
	}
	return kvs
}

// nameSpan shows a lock's name on a span that is recorded.
func (o *observer) nameSpan(span trace.Span, name string) {
	if kv, ok := o.spanName(name); ok {
		span.SetAttributes(kv)
	}
}

// metricName is the lock's name as metrics have it; "" for not at all.
func (o *observer) metricName(name string) string {
	if f := o.cfg.metricName; f != nil {
		return f(name)
	}
	return ""
}

// fail marks a span as failed. The texts of errors quote the lock's name, or
// its znode, so they are shown only where names are shown as they are.
func (o *observer) fail(span trace.Span, err error, errorType string) {
	text := errorType
	if o.cfg.spanName == nil {
		text = err.Error()
	}
	span.SetAttributes(AttrErrorType.String(errorType))
	span.SetStatus(codes.Error, text)
}
