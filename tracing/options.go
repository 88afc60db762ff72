package tracing

import (
	"crypto/sha256"
	"encoding/hex"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Option configures Hooks or RegisterStats. A later option overrides an earlier one of
// the same kind.
type Option interface{ apply(*config) }

type optionFunc func(*config)

func (f optionFunc) apply(c *config) { f(c) }

// config has what the options set. It does not change after newConfig has returned.
type config struct {
	tracerProvider trace.TracerProvider
	meterProvider  metric.MeterProvider
	spanName       func(string) string // nil: names unchanged
	metricName     func(string) string // nil: metrics without names
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
	return c.tracerProvider.Tracer(ScopeName, trace.WithInstrumentationVersion(scopeVersion), trace.WithSchemaURL(semconv.SchemaURL))
}

func (c *config) meter() metric.Meter {
	return c.meterProvider.Meter(ScopeName, metric.WithInstrumentationVersion(scopeVersion), metric.WithSchemaURL(semconv.SchemaURL))
}

// WithTracerProvider sets the provider that gets the spans. The default is the global
// provider, otel.GetTracerProvider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return optionFunc(func(c *config) { c.tracerProvider = p })
}

// WithMeterProvider sets the provider that gets the metrics. The default is the global
// provider, otel.GetMeterProvider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return optionFunc(func(c *config) { c.meterProvider = p })
}

// WithName sets a function that maps a lock's name for spans. If it returns "", the span
// does not show a name. With WithName, spans do not show the texts of errors either,
// because these contain names. By default names are shown unchanged. See HashName and
// OmitName.
func WithName(f func(name string) string) Option {
	return optionFunc(func(c *config) { c.spanName = f })
}

// WithNameAttribute adds the attribute zklock.name to metrics. Its value is what f
// returns for the lock's name; if that is "", the attribute is left out. Every value
// that f returns makes a separate time series for as long as the process lives. So f must
// return few different values: a route, a kind of resource, the part before the first slash. By
// default metrics do not have the attribute.
func WithNameAttribute(f func(name string) string) Option {
	return optionFunc(func(c *config) { c.metricName = f })
}

// WithHoldSpan adds the span zklock.hold: the time a lock was held, as a child of the span
// around the call of Acquire. It is off by default. If a lock is held in the background, its
// hold span ends long after its parent. If a lock is held during a request, the hold span is
// about as long as its parent.
func WithHoldSpan() Option {
	return optionFunc(func(c *config) { c.holdSpan = true })
}

// HashName is for WithName. It returns the first 64 bits of the name's SHA-256, in
// hexadecimal. Equal names have equal hashes, so a reader of the spans can check whether
// a guessed name is right.
func HashName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// OmitName is for WithName. It returns "", so spans do not show names.
func OmitName(string) string { return "" }
