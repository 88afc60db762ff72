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

// Bucket boundaries. Durations range from a hand-over, which sends no request, to the
// longest reasonable wait for a lock.
var (
	secondBuckets = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 30, 60, 120, 300}
	groupBuckets  = []float64{1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000}
)

// instruments are the instruments of the metrics of Hooks.
type instruments struct {
	acquire    metric.Float64Histogram
	wait       metric.Float64Histogram
	hold       metric.Float64Histogram
	stop       metric.Float64Histogram
	held       metric.Int64UpDownCounter
	waiting    metric.Int64UpDownCounter
	lost       metric.Int64Counter
	deadlocks  metric.Int64Counter
	handovers  metric.Int64Counter
	operation  metric.Float64Histogram
	group      metric.Int64Histogram
	sessions   metric.Int64Counter
	reconnects metric.Int64Counter
	silent     metric.Int64Counter
	lease      metric.Float64Histogram
}

func newInstruments(m metric.Meter) *instruments {
	return &instruments{
		acquire: seconds(m, MetricAcquireDuration, "How long acquisitions took, including the wait."),
		wait:    seconds(m, MetricWaitDuration, "How long acquisitions waited for other holders, without those that did not wait, and without candidacies."),
		hold:    seconds(m, MetricHoldDuration, "How long locks were held."),
		stop:    seconds(m, MetricStopDuration, "How long work went on after its lock was lost or revoked."),
		held: orNoop[metric.Int64UpDownCounter](noop.Int64UpDownCounter{})(m.Int64UpDownCounter(MetricHeld,
			metric.WithUnit("{lock}"), metric.WithDescription("Locks that are held."))),
		waiting: orNoop[metric.Int64UpDownCounter](noop.Int64UpDownCounter{})(m.Int64UpDownCounter(MetricWaiting,
			metric.WithUnit("{lock}"), metric.WithDescription("Acquisitions that wait for other holders."))),
		lost:      counter(m, MetricLost, "{lock}", "Locks that were lost."),
		deadlocks: counter(m, MetricDeadlocks, "{wait}", "Acquisitions that were ended because of a deadlock."),
		handovers: counter(m, MetricHandovers, "{lock}", "Hand-overs: places that were passed on inside the process."),
		operation: seconds(m, MetricOperationDuration, "How long requests to the ensemble took."),
		group: orNoop[metric.Int64Histogram](noop.Int64Histogram{})(m.Int64Histogram(MetricOperationGroupSize,
			metric.WithUnit("{request}"), metric.WithDescription("How many callers' writes were sent in one transaction."),
			metric.WithExplicitBucketBoundaries(groupBuckets...))),
		sessions:   counter(m, MetricSessionLost, "{session}", "Sessions that expired or that the client gave up."),
		reconnects: counter(m, MetricSessionReconnects, "{session}", "How often a suspended session was connected again."),
		silent:     counter(m, MetricSessionSilent, "{session}", "How often a session was suspended because its server did not answer."),
		lease:      seconds(m, MetricLeaseRemaining, "How much of a session's lease was left at a heartbeat."),
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

// orNoop returns a function for the results of a Meter's method. If the instrument
// could not be made, that function reports the error to OpenTelemetry's error handler,
// and returns fallback.
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

// acquisitions reports whether any metric of acquisitions and locks is recorded.
func (i *instruments) acquisitions(ctx context.Context) bool {
	return i.acquire.Enabled(ctx) || i.wait.Enabled(ctx) || i.hold.Enabled(ctx) || i.stop.Enabled(ctx) ||
		i.held.Enabled(ctx) || i.waiting.Enabled(ctx) || i.lost.Enabled(ctx) || i.deadlocks.Enabled(ctx) || i.handovers.Enabled(ctx)
}

// series has the attributes of a measurement; empty ones are left out. Few combinations
// occur, so their attribute sets are made once.
type series struct {
	mode, outcome, errorType, reason, operation, name string
	candidacy                                         bool
}

// measurement has the options for recording into a series, for histograms and for
// counters.
type measurement struct {
	record []metric.RecordOption
	add    []metric.AddOption
	begun  atomic.Bool // see begin
}

// begin makes a counter's series begin at 0. A rate is the difference of two values.
// Without the 0, the first event would not show in it, because the counter's first
// value is 1.
func (m *measurement) begin(ctx context.Context, c metric.Int64Counter) {
	if !m.begun.Swap(true) {
		c.Add(ctx, 0, m.add...)
	}
}

// maxSeries limits how many series are remembered. Beyond it, attribute sets are made for
// each measurement. Only a WithNameAttribute that returns too many names gets there.
const maxSeries = 1000

// seriesCache remembers the measurement of each series.
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
	if s.candidacy {
		kvs = append(kvs, AttrCandidacy.Bool(true))
	}
	set := metric.WithAttributeSet(attribute.NewSet(kvs...))
	return &measurement{record: []metric.RecordOption{set}, add: []metric.AddOption{set}}
}
