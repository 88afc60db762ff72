package tracing_test

import (
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

// process is what one process of an application has: a Client, and providers of
// its own.
type process struct {
	*zklock.Client
	t      *testing.T
	app    trace.Tracer // of the application's own spans
	hooks  zklock.Hooks
	spans  *tracetest.SpanRecorder
	reader *sdkmetric.ManualReader
}

// world runs a test in a bubble, with an ensemble that every process started
// in it uses.
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

// start starts a process, which ends with the test.
func start(t *testing.T, e *memdriver.Ensemble, opts ...tracing.Option) *process {
	t.Helper()
	p := &process{t: t, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	tp := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p.spans))
	mp := sdkmetric.NewMeterProvider(sdkmetric.WithReader(p.reader))
	p.app = tp.Tracer("app")
	p.hooks = tracing.Hooks(append([]tracing.Option{tracing.WithTracerProvider(tp), tracing.WithMeterProvider(mp)}, opts...)...)
	c, err := zklock.OpenConnector(e.Connector(), zklock.WithHooks(p.hooks))
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

// ended returns the spans of that name that have ended, in that order.
func (p *process) ended(name string) []sdktrace.ReadOnlySpan {
	var found []sdktrace.ReadOnlySpan
	for _, s := range p.spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

// one returns the only span of that name that has ended.
func (p *process) one(name string) sdktrace.ReadOnlySpan {
	p.t.Helper()
	found := p.ended(name)
	if len(found) != 1 {
		p.t.Fatalf("%d spans %s have ended, want 1", len(found), name)
	}
	return found[0]
}

// values returns all there is measured as "name{key=value,...}" in the order of
// keys: a counter's or gauge's value, and for a histogram its count, with the
// sum under "name.sum{...}".
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

// lost waits until the lock is lost and all has been told of it: who holds it
// has to know first, so the hooks are called after Done is closed.
func lost(lock *zklock.Lock) {
	<-lock.Done()
	synctest.Wait()
}

// none is the value of what must not have been measured.
const none = -1

// measured checks all there is of the metrics that want names.
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
			p.t.Errorf("%s is %v, want none", key, v)
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

// attributes returns a span's or an event's attributes.
func attributes(kvs []attribute.KeyValue) map[attribute.Key]string {
	m := make(map[attribute.Key]string)
	for _, kv := range kvs {
		m[kv.Key] = kv.Value.String()
	}
	return m
}

// shows checks attributes of a span; "" is for those that must not be there.
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

// linksTo checks where all of a span's links lead to, by ids, in order.
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

// later runs f in a goroutine, and returns when it has come to a standstill.
func later(f func()) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	synctest.Wait()
	return func() { <-done }
}

// pass lets time pass.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
