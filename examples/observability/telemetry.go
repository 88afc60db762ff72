package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdoutmetric"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/zklock/go-zklock/contrib/contention"
	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
)

// telemetry sends spans and metrics to exporters. It sets no global provider.
type telemetry struct {
	traces     *sdktrace.TracerProvider
	meters     *sdkmetric.MeterProvider
	propagator propagation.TextMapPropagator
	profile    *contention.Profile

	scraped string       // address of /metrics, or "none"
	metrics *http.Server // serves /metrics; nil without -prometheus
	served  chan error   // the result of metrics.Serve
}

// export returns telemetry with the exporters that the flags ask for.
func export(ctx context.Context, f flags, out io.Writer) (t *telemetry, err error) {
	res := resource.NewWithAttributes(semconv.SchemaURL, semconv.ServiceName(f.name), semconv.ProcessPID(os.Getpid()))
	traces := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	meters := []sdkmetric.Option{sdkmetric.WithResource(res)}
	t = &telemetry{propagator: propagation.TraceContext{}, profile: contention.New(contention.WithHolderLabels()), scraped: "none"}
	if f.otlp != "" {
		spans, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint(f.otlp), otlptracegrpc.WithInsecure())
		if err != nil {
			return nil, err
		}
		metrics, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint(f.otlp), otlpmetricgrpc.WithInsecure())
		if err != nil {
			return nil, errors.Join(err, spans.Shutdown(ctx))
		}
		traces = append(traces, sdktrace.WithBatcher(spans, sdktrace.WithBatchTimeout(time.Second)))
		meters = append(meters, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics, sdkmetric.WithInterval(f.every))))
	}
	if f.stdout {
		out := &serialWriter{w: out} // spans and metrics are exported at the same time
		spans, err1 := stdouttrace.New(stdouttrace.WithWriter(out))
		metrics, err2 := stdoutmetric.New(stdoutmetric.WithWriter(out))
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
		traces = append(traces, sdktrace.WithBatcher(spans))
		meters = append(meters, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metrics, sdkmetric.WithInterval(f.every))))
	}
	if f.prometheus != "" {
		reader, err := t.serveMetrics(f.prometheus)
		if err != nil {
			return nil, err
		}
		meters = append(meters, sdkmetric.WithReader(reader))
	}
	t.traces, t.meters = sdktrace.NewTracerProvider(traces...), sdkmetric.NewMeterProvider(meters...)
	return t, nil
}

// serveMetrics serves /metrics, and the profiles of waits and of held locks. In the OpenMetrics format, the buckets of histograms have
// exemplars: ids of traces with requests that took that long.
func (t *telemetry) serveMetrics(addr string) (sdkmetric.Reader, error) {
	registry := prom.NewRegistry()
	reader, err := prometheus.New(prometheus.WithRegisterer(registry), prometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	mux.Handle("GET /debug/zklock/contention", t.profile.Handler())
	mux.Handle("GET /debug/zklock/held", t.profile.HeldHandler())
	t.scraped, t.served = l.Addr().String(), make(chan error, 1)
	t.metrics = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { t.served <- t.metrics.Serve(l) }()
	return reader, nil
}

// hooks returns the hooks that make a Client report spans and metrics, and write the profile.
// Metrics have only the part of a lock's name before the slash, "orders", because each value is a
// time series.
func (t *telemetry) hooks() zklock.Hooks {
	return zklock.JoinHooks(t.profile.Hooks(), tracing.Hooks(tracing.WithTracerProvider(t.traces), tracing.WithMeterProvider(t.meters), tracing.WithHoldSpan(),
		tracing.WithNameAttribute(func(name string) string {
			group, _, _ := strings.Cut(name, "/")
			return group
		})))
}

// shutdown sends the spans and metrics that were not sent yet, and ends the exporters.
func (t *telemetry) shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err := errors.Join(t.traces.Shutdown(ctx), t.meters.Shutdown(ctx))
	if t.metrics != nil {
		err = errors.Join(err, t.metrics.Shutdown(ctx))
		if e := <-t.served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// serialWriter passes on one write at a time. The exporters write each record with one
// call, so records do not mix.
type serialWriter struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func (s *serialWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}
