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

// traced is a client with providers of its own, as a process of an application
// has them.
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

// counts returns how often each histogram was recorded into.
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

// What links the two is what the holder wrote into its queue node: nothing but
// the ensemble is between the clients.
func TestWaitSpanLinksAcrossClientsOverZooKeeper(t *testing.T) {
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
		t.Error("the wait span is no part of the request that waited")
	}
	if links := waiter.span(t, tracing.SpanRelease).Links(); len(links) != 1 || links[0].SpanContext.SpanID() != waited.Parent().SpanID() {
		t.Errorf("the release span links to %+v, want its acquisition", links)
	}
	if c := waiter.counts(t); c[tracing.MetricWaitDuration] != 1 || c[tracing.MetricHoldDuration] != 1 || c[tracing.MetricOperationDuration] == 0 {
		t.Errorf("recorded %v", c)
	}
}

// The traceparent travels in requests that are made anyway: as many with spans
// as without.
func TestTracingCostsNoRequests(t *testing.T) {
	hosts := sharedEnsemble(t).Server(0).Addr()
	operations := func(opts ...zklock.Option) map[string]int {
		counted := make(chan string, 1<<14)
		count := zklock.Hooks{Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			counted <- e.Kind
			return ctx, nil
		}}
		waiting, names := waits()
		c := dial(t, hosts, quick("handover_limit", "0"), append(opts, zklock.WithHooks(zklock.JoinHooks(count, waiting)))...)
		release(t, acquire(t, c.Mutex("m"))) // what is made once is made
		held := acquire(t, c.Mutex("m"))
		attempt := try(t, within(t), c.Mutex("m"))
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
	plain := operations()
	with := operations(zklock.WithHooks(tracing.Hooks(tracing.WithTracerProvider(tp), tracing.WithMeterProvider(mp))))
	for _, kind := range []string{"enqueue", "release", "list", "watch"} {
		if plain[kind] != with[kind] {
			t.Errorf("%d requests of kind %s with tracing, %d without", with[kind], kind, plain[kind])
		}
	}
	if plain["enqueue"] != 3 || plain["watch"] == 0 {
		t.Errorf("requests %v: that is not the contention it should be", plain)
	}
}
