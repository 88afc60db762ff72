package tracing_test

import (
	"cmp"
	"context"
	"fmt"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// process is one process of an application: a Client, and its own providers.
type process struct {
	*zklock.Client
	t      *testing.T
	app    trace.Tracer // for the application's own spans
	hooks  zklock.Hooks
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
}

// world runs a test in a synctest bubble, with an ensemble for all its processes.
func world(t *testing.T, test func(t *testing.T, e *memdriver.Ensemble), opts ...memdriver.Option) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(opts...)
		t.Cleanup(func() {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, e)
	})
}

// start starts a process, which ends when the test ends.
func start(t *testing.T, e *memdriver.Ensemble, opts ...tracing.Option) *process {
	t.Helper()
	return startWith(t, zklock.Config{Connector: e.Connector()}, opts...)
}

// startWith starts a process whose client has these settings.
func startWith(t *testing.T, cfg zklock.Config, opts ...tracing.Option) *process {
	t.Helper()
	p := &process{t: t, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p.spans))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.reader))
	p.app = tp.Tracer("app")
	p.hooks = tracing.Hooks(append([]tracing.Option{tracing.WithTracerProvider(tp), tracing.WithMeterProvider(mp)}, opts...)...)
	cfg.SessionTimeout = cmp.Or(cfg.SessionTimeout, 10*time.Second) // a loss takes a third of the default's time
	c, err := zklock.OpenConfig(cfg, zklock.WithHooks(p.hooks))
	if err != nil {
		t.Fatal(err)
	}
	p.Client = c
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		for _, s := range p.spans.Ended() {
			if s.InstrumentationScope().Name != tracing.ScopeName {
				continue
			}
			isDocumented(t, s.Name(), s.Attributes())
			for _, event := range s.Events() {
				isDocumented(t, event.Name, event.Attributes)
			}
		}
	})
	return p
}

// request begins a span of the application.
func (p *process) request(name string) (context.Context, trace.Span) {
	return p.app.Start(p.t.Context(), name)
}

// ended returns the spans of a name that have ended, in the order of their ends.
func (p *process) ended(name string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, s := range p.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

// one returns the only ended span of a name.
func (p *process) one(name string) sdktrace.ReadOnlySpan {
	p.t.Helper()
	found := p.ended(name)
	if len(found) != 1 {
		p.t.Fatalf("%d spans %s have ended, want 1", len(found), name)
	}
	return found[0]
}

// values returns all measured values by "name{key=value,...}", with sorted keys. The
// value of a histogram is its count; its sum is under "name.sum{...}".
func (p *process) values() map[string]float64 {
	p.t.Helper()
	var rm metricdata.ResourceMetrics
	if err := p.reader.Collect(p.t.Context(), &rm); err != nil {
		p.t.Fatal(err)
	}
	values := make(map[string]float64)
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, dp := range data.DataPoints {
					isDocumented(p.t, m.Name, dp.Attributes.ToSlice())
					values[m.Name+text(dp.Attributes)] = float64(dp.Value)
				}
			case metricdata.Gauge[float64]:
				for _, dp := range data.DataPoints {
					isDocumented(p.t, m.Name, dp.Attributes.ToSlice())
					values[m.Name+text(dp.Attributes)] = dp.Value
				}
			case metricdata.Histogram[float64]:
				for _, dp := range data.DataPoints {
					isDocumented(p.t, m.Name, dp.Attributes.ToSlice())
					values[m.Name+text(dp.Attributes)] = float64(dp.Count)
					values[m.Name+".sum"+text(dp.Attributes)] = dp.Sum
				}
			case metricdata.Histogram[int64]:
				for _, dp := range data.DataPoints {
					isDocumented(p.t, m.Name, dp.Attributes.ToSlice())
					values[m.Name+text(dp.Attributes)] = float64(dp.Count)
					values[m.Name+".sum"+text(dp.Attributes)] = float64(dp.Sum)
				}
			default:
				p.t.Fatalf("%s is a %T", m.Name, m.Data)
			}
		}
	}
	return values
}

// lost waits until the lock is lost and the hooks have been called. They are called after
// Done is closed, because the holder has to notice the loss first.
func lost(lock *zklock.Lock) {
	<-lock.Done()
	synctest.Wait()
}

// none means that a series must not have been measured.
const none = -1

// measured checks all series of the metrics in want.
func (p *process) measured(want map[string]float64) {
	p.t.Helper()
	got := p.values()
	names := make(map[string]bool)
	for key, v := range want {
		name, _, _ := strings.Cut(key, "{")
		names[strings.TrimSuffix(name, ".sum")] = true
		if g, ok := got[key]; ok != (v != none) || ok && (g < v-1e-9 || g > v+1e-9) {
			p.t.Errorf("%s is %v, want %v (measured: %t)", key, g, v, ok)
		}
	}
	for key, v := range got {
		name, _, _ := strings.Cut(key, "{")
		if _, wanted := want[key]; !wanted && names[name] {
			p.t.Errorf("%s is %v, want it not to be measured", key, v)
		}
	}
}

func text(set attribute.Set) string {
	var kvs []string
	for _, kv := range set.ToSlice() {
		kvs = append(kvs, fmt.Sprintf("%s=%s", strings.TrimPrefix(string(kv.Key), "zklock."), kv.Value.String()))
	}
	sort.Strings(kvs)
	return "{" + strings.Join(kvs, ",") + "}"
}

// attributes returns the attributes of a span or an event as a map.
func attributes(kvs []attribute.KeyValue) map[attribute.Key]string {
	m := make(map[attribute.Key]string)
	for _, kv := range kvs {
		m[kv.Key] = kv.Value.String()
	}
	return m
}

// shows checks attributes of a span or an event; "" means that one must be missing.
func shows(t *testing.T, what string, kvs []attribute.KeyValue, want map[attribute.Key]string) {
	t.Helper()
	got := attributes(kvs)
	for key, v := range want {
		if got[key] != v {
			t.Errorf("%s: %s is %q, want %q", what, key, got[key], v)
		}
	}
}

// childOf checks a span's parent.
func childOf(t *testing.T, s sdktrace.ReadOnlySpan, parent trace.SpanContext) {
	t.Helper()
	if s.Parent().SpanID() != parent.SpanID() || s.SpanContext().TraceID() != parent.TraceID() {
		t.Errorf("span %s is a child of %s in trace %s, want of %s in %s",
			s.Name(), s.Parent().SpanID(), s.SpanContext().TraceID(), parent.SpanID(), parent.TraceID())
	}
}

// linksTo checks that a span links to exactly these spans, in this order.
func linksTo(t *testing.T, s sdktrace.ReadOnlySpan, want ...sdktrace.ReadOnlySpan) {
	t.Helper()
	var got []string
	for _, l := range s.Links() {
		got = append(got, id(l.SpanContext))
	}
	var ids []string
	for _, w := range want {
		ids = append(ids, id(w.SpanContext()))
	}
	if strings.Join(got, " ") != strings.Join(ids, " ") {
		t.Errorf("span %s links to %v, want %v", s.Name(), got, ids)
	}
}

func id(sc trace.SpanContext) string { return sc.TraceID().String() + "/" + sc.SpanID().String() }

func must(t *testing.T, ctx context.Context, a zklock.Acquirer, opts ...zklock.AcquireOption) *zklock.Lock {
	t.Helper()
	l, err := a.Acquire(ctx, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func release(t *testing.T, l *zklock.Lock) {
	t.Helper()
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// later runs f in a goroutine, and returns when all goroutines of the bubble are blocked.
// wait waits for the end of f.
func later(f func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	synctest.Wait()
	return func() { <-done }
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
