package tracing

import (
	"crypto/sha256"
	"encoding/hex"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Option sets something about Hooks or RegisterStats. Later ones win.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config is what the options set. It does not change once it was made.
type config struct {
	tracerProvider trace.TracerProvider
	meterProvider  metric.MeterProvider
	spanName       func(string) string // nil: names as they are
	metricName     func(string) string // nil: no names
	holdSpan       bool
}

func newConfig(opts []Option) *config {
	c := &config{}
	for _, o := range opts {
		if o != nil {
			o.apply(c)
		}
	}
	if c.tracerProvider == nil {
		c.tracerProvider = otel.GetTracerProvider()
	}
	if c.meterProvider == nil {
		c.meterProvider = otel.GetMeterProvider()
	}
	return c
}

func (c *config) tracer() trace.Tracer {
	return c.tracerProvider.Tracer(ScopeName, trace.WithInstrumentationVersion(Version), trace.WithSchemaURL(semconv.SchemaURL))
}

func (c *config) meter() metric.Meter {
	return c.meterProvider.Meter(ScopeName, metric.WithInstrumentationVersion(Version), metric.WithSchemaURL(semconv.SchemaURL))
}

// WithTracerProvider sets where spans go; by default it is the global provider,
// otel.GetTracerProvider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(c *config) { c.tracerProvider = p })
}

// WithMeterProvider sets where metrics go; by default it is the global provider,
// otel.GetMeterProvider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(c *config) { c.meterProvider = p })
}

// WithName sets how a lock's name is shown on spans: as f maps it, and not at
// all where that is "". By default it is shown as it is. Where there is a
// WithName, the texts of errors, which quote names, stay off the spans as well.
// See HashName and OmitName.
func WithName(f func(name string) string) Option {
	return optionFunc(func(c *config) { c.spanName = f })
}

// WithNameAttribute puts names on metrics: as f maps them, and not at all where
// that is "". Every value f returns is a time series of its own for as long as
// the process lives, so f has to return few: a route, a kind of resource, the
// part before the first slash. By default no metric has a name.
func WithNameAttribute(f func(name string) string) Option {
	return optionFunc(func(c *config) { c.metricName = f })
}

// WithHoldSpan adds the span zklock.hold: the time a lock was held, as a child
// of the span that the acquisition was made in. It is off by default, since
// such a span ends long after its parent where a lock is held in the
// background, and is no longer than its parent where it is held in a request.
func WithHoldSpan() Option {
	return optionFunc(func(c *config) { c.holdSpan = true })
}

// HashName is for WithName: it shows the first 64 bits of the name's SHA-256.
// Equal names stay recognizable, and so does a name that somebody guesses.
func HashName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// OmitName is for WithName: it shows no names.
func OmitName(string) string { return "" }
