package integration_test

import (
	"context"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
)

// traced is a client with separate OpenTelemetry providers, like a separate process of an
// application.
type traced struct {
	*zklock.Client
	app    trace.Tracer
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
}

func dialTraced(t *testing.T, hosts string, opts ...zklock.Option) *traced {
	t.Helper()
	p := &traced{spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p.spans))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.reader))
	p.app = tp.Tracer("app")
	hooks := tracing.Hooks(tracing.WithTracerProvider(tp), tracing.WithMeterProvider(mp))
	p.Client = dial(t, hosts, quick(), append(opts, zklock.WithHooks(hooks))...)
	return p
}

// span returns the only span of that name that has ended.
func (p *traced) span(t *testing.T, name string) sdktrace.ReadOnlySpan {
	t.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, s := range p.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d spans %s have ended, want 1", len(found), name)
	}
	return found[0]
}

// counts returns the number of values in each histogram.
func (p *traced) counts(t *testing.T) map[string]uint64 {
	t.Helper()
	var rm metricdata.ResourceMetrics
	if err := p.reader.Collect(within(t), &rm); err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]uint64)
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
				for _, dp := range h.DataPoints {
					counts[m.Name] += dp.Count
				}
			}
		}
	}
	return counts
}

// The waiter's span links to the holder's span. The waiter finds that in the data of the
// holder's queue node: the clients share only the ensemble.
func TestWaitSpanLinksAcrossClientsOverZooKeeper(t *testing.T) {
	t.Parallel()
	hosts := sharedEnsemble(t).Server(0).Addr()
	waiting, names := waits()
	holder, waiter := dialTraced(t, hosts), dialTraced(t, hosts, zklock.WithHooks(waiting))
	fastCtx, fast := holder.app.Start(within(t), "fast")
	slowCtx, slow := waiter.app.Start(within(t), "slow")
	held, err := holder.Mutex("m").Acquire(fastCtx)
	if err != nil {
		t.Fatal(err)
	}
	attempt := try(t, slowCtx, waiter.Mutex("m"))
	receive(t, "the wait", names)
	queue, err := waiter.Contenders(within(t), "m")
	if err != nil {
		t.Fatal(err)
	}
	if len(queue) != 2 || queue[0].Trace == "" || queue[1].Trace == "" {
		t.Fatalf("the queue is %+v, want two contenders with traces", queue)
	}
	release(t, held)
	release(t, attempt.must(t))
	fast.End()
	slow.End()

	blocker, waited := holder.span(t, tracing.SpanAcquire), waiter.span(t, tracing.SpanWait)
	if links := waited.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != blocker.SpanContext().SpanID() ||
		links[0].SpanContext.TraceID() != fast.SpanContext().TraceID() {
		t.Errorf("the wait span links to %+v, want the holder's %+v", links, blocker.SpanContext())
	}
	if waited.SpanContext().TraceID() != slow.SpanContext().TraceID() || waited.Parent().SpanID() != waiter.span(t, tracing.SpanAcquire).SpanContext().SpanID() {
		t.Error("the wait span does not belong to the request that waited")
	}
	if links := waiter.span(t, tracing.SpanRelease).Links(); len(links) != 1 || links[0].SpanContext.SpanID() != waited.Parent().SpanID() {
		t.Errorf("the release span links to %+v, want its acquisition", links)
	}
	if c := waiter.counts(t); c[tracing.MetricWaitDuration] != 1 || c[tracing.MetricHoldDuration] != 1 || c[tracing.MetricOperationDuration] == 0 {
		t.Errorf("the histograms have %v values, want one wait, one hold, and some operations", c)
	}
}

// The traceparent is part of requests that are sent anyway. So there are as many requests
// with tracing as without. The clients are calm: one that waits for long reads its own node once more.
func TestTracingCostsNoRequests(t *testing.T) {
	t.Parallel()
	hosts := calm(t).Server(0).Addr()
	operations := func(name string, opts ...zklock.Option) map[string]int { // of a name that does not exist yet
		counted := make(chan string, 1<<14)
		count := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			counted <- e.Kind
			return ctx, nil
		}}
		waiting, names := waits()
		c := dial(t, hosts, slow(), append(opts, zklock.WithHooks(zklock.JoinHooks(count, waiting)))...)
		release(t, acquire(t, c.Mutex(name))) // creates what is created only once
		release(t, acquire(t, c.Mutex(name)))
		held := acquire(t, dial(t, hosts, slow()).Mutex(name))
		attempt := try(t, within(t), c.Mutex(name))
		receive(t, "the wait", names)
		release(t, held)
		release(t, attempt.must(t))
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		kinds := make(map[string]int)
		for close(counted); ; {
			kind, ok := <-counted
			if !ok {
				break
			}
			kinds[kind]++
		}
		return kinds
	}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(tracetest.NewSpanRecorder()))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	plain := operations("plain")
	with := operations("traced", zklock.WithHooks(tracing.Hooks(tracing.WithTracerProvider(tp), tracing.WithMeterProvider(mp))))
	for _, kind := range []string{"enqueue", "release", "list", "watch"} {
		if plain[kind] != with[kind] {
			t.Errorf("%d requests of kind %s with tracing, %d without", with[kind], kind, plain[kind])
		}
	}
	if plain["enqueue"] != 3 || plain["watch"] == 0 {
		t.Errorf("requests %v, want 3 of kind enqueue and some of kind watch: the test had no contention", plain)
	}
}
