package tracing

import (
	"context"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// Bucket boundaries. Durations reach from a hand-over, which costs no request,
// to the longest that a lock is sensibly waited for.
var (
	secondBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120, 300}
	groupBuckets  = []float64{1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000}
)

// instruments are what Hooks records into.
type instruments struct {
	acquire    metric.Float64Histogram
	wait       metric.Float64Histogram
	hold       metric.Float64Histogram
	held       metric.Int64UpDownCounter
	waiting    metric.Int64UpDownCounter
	lost       metric.Int64Counter
	handovers  metric.Int64Counter
	operation  metric.Float64Histogram
	group      metric.Int64Histogram
	sessions   metric.Int64Counter
	reconnects metric.Int64Counter
	lease      metric.Float64Histogram
}

func newInstruments(m metric.Meter) *instruments {
	return &instruments{
		acquire: seconds(m, MetricAcquireDuration, "How long acquisitions took, waiting included."),
		wait:    seconds(m, MetricWaitDuration, "How long acquisitions that had to wait for other holders waited for them."),
		hold:    seconds(m, MetricHoldDuration, "How long locks were held."),
		held: orNoop[metric.Int64UpDownCounter](noop.Int64UpDownCounter{})(m.Int64UpDownCounter(MetricHeld,
			metric.WithUnit("{lock}"), metric.WithDescription("Locks held."))),
		waiting: orNoop[metric.Int64UpDownCounter](noop.Int64UpDownCounter{})(m.Int64UpDownCounter(MetricWaiting,
			metric.WithUnit("{lock}"), metric.WithDescription("Acquisitions that wait for other holders."))),
		lost:      counter(m, MetricLost, "{lock}", "Locks lost."),
		handovers: counter(m, MetricHandovers, "{lock}", "Locks passed on inside the process."),
		operation: seconds(m, MetricOperationDuration, "How long requests to the ensemble took."),
		group: orNoop[metric.Int64Histogram](noop.Int64Histogram{})(m.Int64Histogram(MetricOperationGroupSize,
			metric.WithUnit("{request}"), metric.WithDescription("Writes of callers in one transaction."),
			metric.WithExplicitBucketBoundaries(groupBuckets...))),
		sessions:   counter(m, MetricSessionLost, "{session}", "Sessions that expired or were given up."),
		reconnects: counter(m, MetricSessionReconnects, "{session}", "Sessions that were suspended and came back."),
		lease:      seconds(m, MetricLeaseRemaining, "What was left of the lease at a heartbeat."),
	}
}

func seconds(m metric.Meter, name, description string) metric.Float64Histogram {
	return orNoop[metric.Float64Histogram](noop.Float64Histogram{})(m.Float64Histogram(name,
		metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(secondBuckets...)))
}

func counter(m metric.Meter, name, unit, description string) metric.Int64Counter {
	return orNoop[metric.Int64Counter](noop.Int64Counter{})(m.Int64Counter(name,
		metric.WithUnit(unit), metric.WithDescription(description)))
}

// orNoop returns what takes the results of a Meter's method: an instrument that
// cannot be had is reported to OpenTelemetry's error handler, and left out.
func orNoop[I comparable](fallback I) func(I, error) I {
	return func(i I, err error) I {
		var none I
		if err != nil {
			otel.Handle(err)
		}
		if i == none {
			return fallback
		}
		return i
	}
}

// acquisitions reports whether anything is recorded about acquisitions and
// locks.
func (i *instruments) acquisitions(ctx context.Context) bool {
	return i.acquire.Enabled(ctx) || i.wait.Enabled(ctx) || i.hold.Enabled(ctx) ||
		i.held.Enabled(ctx) || i.waiting.Enabled(ctx) || i.lost.Enabled(ctx) || i.handovers.Enabled(ctx)
}

// series is the attributes of a measurement; what is empty is left out. Few
// combinations occur, so their attribute sets are made once.
type series struct {
	mode, outcome, errorType, reason, operation, name string
}

// measurement is the options for recording into a series: of a histogram, and
// of a counter.
type measurement struct {
	record []metric.RecordOption
	add    []metric.AddOption
	begun  atomic.Bool // see begin
}

// begin makes a counter's series begin at 0. A rate is the difference of two
// values: of a counter that appears with its first event, that is never seen.
func (m *measurement) begin(ctx context.Context, c metric.Int64Counter) {
	if !m.begun.Swap(true) {
		c.Add(ctx, 0, m.add...)
	}
}

// maxSeries bounds what is remembered; beyond it attribute sets are made for
// each measurement. It takes a WithNameAttribute that returns too many names.
const maxSeries = 1000

// seriesCache remembers the measurements of series.
type seriesCache struct {
	mu    sync.RWMutex
	known map[series]*measurement // guarded by mu
}

func (c *seriesCache) get(s series) *measurement {
	c.mu.RLock()
	m := c.known[s]
	c.mu.RUnlock()
	if m != nil {
		return m
	}
	m = s.measurement()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) < maxSeries {
		if c.known == nil {
			c.known = make(map[series]*measurement)
		}
		c.known[s] = m
	}
	return m
}

func (s series) measurement() *measurement {
	var kvs []attribute.KeyValue
	for _, a := range []struct {
		key   attribute.Key
		value string
	}{{AttrMode, s.mode}, {AttrOutcome, s.outcome}, {AttrErrorType, s.errorType}, {AttrReleaseReason, s.reason}, {AttrOperation, s.operation}, {AttrName, s.name}} {
		if a.value != "" {
			kvs = append(kvs, a.key.String(a.value))
		}
	}
	set := metric.WithAttributeSet(attribute.NewSet(kvs...))
	return &measurement{record: []metric.RecordOption{set}, add: []metric.AddOption{set}}
}
