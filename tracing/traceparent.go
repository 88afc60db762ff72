package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is a carrier with the only header that is written to queue nodes: the W3C
// traceparent. The tracestate and the baggage of a request are private, and stay out.
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

// inject is the Inject hook. The span in ctx is the acquire span. If none is recorded,
// it is the caller's span, so other processes at least find the trace of the request.
func inject(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	var t traceparent
	propagation.TraceContext{}.Inject(ctx, &t)
	return string(t)
}

// linkTo parses a traceparent and returns a link to it, and whether it is valid. Another
// process may have written it, so it can be any text.
func linkTo(parent string) (trace.Link, bool) {
	if parent == "" {
		return trace.Link{}, false
	}
	t := traceparent(parent)
	sc := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), &t))
	return trace.Link{SpanContext: sc}, sc.IsValid()
}
