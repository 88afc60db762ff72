package tracing_test

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// Without WithMeterProvider, the metrics go to the global provider.
func ExampleHooks() {
	spans := tracetest.NewInMemoryExporter()
	tracers := trace.NewTracerProvider(trace.WithSyncer(spans))
	client, err := zklock.Open("mem://", zklock.WithHooks(tracing.Hooks(tracing.WithTracerProvider(tracers), tracing.WithHoldSpan())))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	ctx, request := tracers.Tracer("example").Start(context.Background(), "POST /orders/42")
	_ = zklock.Do(ctx, client.Mutex("orders/42"), func(context.Context, *zklock.Lock) error { return nil })
	request.End()
	for _, s := range spans.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output:
	// zklock.acquire
	// zklock.hold
	// zklock.release
	// POST /orders/42
}

// Spans show hashes of names, and metrics the part of a name before the first slash.
func ExampleWithName() {
	kind := func(name string) string {
		kind, _, _ := strings.Cut(name, "/")
		return kind
	}
	spans, metrics := tracetest.NewInMemoryExporter(), metric.NewManualReader()
	options := []tracing.Option{
		tracing.WithTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans))),
		tracing.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metrics))),
		tracing.WithName(tracing.HashName),
		tracing.WithNameAttribute(kind),
	}
	client, err := zklock.Open("mem://", zklock.WithHooks(tracing.Hooks(options...)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()

	_ = zklock.Do(context.Background(), client.Mutex("orders/42"), func(context.Context, *zklock.Lock) error { return nil })
	for _, kv := range spans.GetSpans()[0].Attributes {
		if kv.Key == tracing.AttrName {
			fmt.Println("span:", kv.Value.AsString())
		}
	}
	var all metricdata.ResourceMetrics
	_ = metrics.Collect(context.Background(), &all)
	for _, m := range all.ScopeMetrics[0].Metrics {
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == tracing.MetricHoldDuration {
			name, _ := h.DataPoints[0].Attributes.Value(tracing.AttrName)
			fmt.Println("metric:", name.AsString())
		}
	}
	fmt.Println("omitted:", tracing.OmitName("orders/42") == "")
	// Output:
	// span: c4dd165f06c35f87
	// metric: orders
	// omitted: true
}

func ExampleRegisterStats() {
	metrics := metric.NewManualReader()
	client, err := zklock.Open("mem://")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	registration, err := tracing.RegisterStats(client, tracing.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(metrics))))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer registration.Unregister()

	if err := client.Ping(context.Background()); err != nil {
		fmt.Println(err)
	}
	var all metricdata.ResourceMetrics
	_ = metrics.Collect(context.Background(), &all)
	for _, m := range all.ScopeMetrics[0].Metrics {
		fmt.Println(m.Name)
	}
	// Output:
	// zklock.sessions
	// zklock.session.draining
	// zklock.session.max
	// zklock.session.opened
	// zklock.hold.longest
	// zklock.wait.longest
	// zklock.forgotten
	// zklock.session.reaped
	// zklock.tokens.regressed
	// zklock.backlog
}
