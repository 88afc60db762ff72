package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is a carrier of the one header that travels in queue nodes: the
// W3C traceparent. What else a request carries, its tracestate and baggage, is
// nobody else's business.
type traceparent string

const traceparentKey = "traceparent"

// Get implements propagation.TextMapCarrier.
func (t *traceparent) Get(key string) string {
	if key == traceparentKey {
		return string(*t)
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (t *traceparent) Set(key, value string) {
	if key == traceparentKey {
		*t = traceparent(value)
	}
}

// Keys implements propagation.TextMapCarrier.
func (t *traceparent) Keys() []string { return []string{traceparentKey} }

// inject is the Inject hook. The span in ctx is the acquire span, or what
// stands for it where none is recorded: then it is the request's trace at
// least that others get to see.
func inject(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	var t traceparent
	propagation.TraceContext{}.Inject(ctx, &t)
	return string(t)
}

// linkTo makes a link of a traceparent. Another process wrote it, so it may be
// anything.
func linkTo(parent string) (trace.Link, bool) {
	if parent == "" {
		return trace.Link{}, false
	}
	t := traceparent(parent)
	sc := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), &t))
	return trace.Link{SpanContext: sc}, sc.IsValid()
}
