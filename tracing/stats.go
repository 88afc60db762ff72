package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"

	"github.com/zklock/go-zklock/zklock"
)

// RegisterStats makes metrics of a Client's sessions. They are read from its Stats at
// each collection. Unregister the Registration after the Client was closed. If several
// Clients use the same MeterProvider, their values are added. RegisterStats returns an
// error if c is nil, or if the MeterProvider does.
func RegisterStats(c *zklock.Client, opts ...Option) (metric.Registration, error) {
	if c == nil {
		return nil, errors.New("tracing: RegisterStats: the Client is nil: want one that Open has made")
	}
	m := newConfig(opts).meter()
	count, err1 := m.Int64ObservableUpDownCounter(MetricSessionCount, metric.WithUnit("{session}"), metric.WithDescription("Sessions with the ensemble."))
	draining, err2 := m.Int64ObservableUpDownCounter(MetricSessionDraining, metric.WithUnit("{session}"), metric.WithDescription("Sessions that end with their last lock."))
	limit, err3 := m.Int64ObservableUpDownCounter(MetricSessionMax, metric.WithUnit("{session}"), metric.WithDescription("Sessions that the pool may have."))
	opened, err4 := m.Int64ObservableCounter(MetricSessionOpened, metric.WithUnit("{session}"), metric.WithDescription("Sessions opened."))
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	connected, suspended, ended := inState(StateConnected), inState(StateSuspended), inState(StateEnded)
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := c.Stats()
		o.ObserveInt64(count, int64(s.Connected), connected)
		o.ObserveInt64(count, int64(s.Suspended), suspended)
		o.ObserveInt64(count, int64(s.Open-s.Connected-s.Suspended), ended)
		o.ObserveInt64(draining, int64(s.Draining))
		o.ObserveInt64(limit, int64(s.MaxSessions))
		o.ObserveInt64(opened, int64(s.SessionsOpened))
		return nil
	}, count, draining, limit, opened)
}

func inState(state string) metric.MeasurementOption {
	return metric.WithAttributes(AttrSessionState.String(state))
}
