package tracing

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"

	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock"
)

// registered counts the calls of RegisterStats, for AttrClient.
var registered atomic.Int64

// RegisterStats makes metrics of a Client's sessions, of its longest hold and wait, of its
// forgotten locks, and of whether tokens went back. They are read from its Stats at each
// collection. Unregister the Registration after the Client was closed. If several Clients use
// the same MeterProvider, their values are added; those of the longest hold and wait, which
// cannot be added, have the attribute zklock.client. RegisterStats returns an error if c is
// nil, or if the MeterProvider does.
func RegisterStats(c *zklock.Client, opts ...Option) (metric.Registration, error) {
	if c == nil {
		return nil, errors.New("tracing: RegisterStats: the Client is nil: want one that Open has made")
	}
	m := newConfig(opts).meter()
	count, err1 := m.Int64ObservableUpDownCounter(MetricSessions, metric.WithUnit("{session}"), metric.WithDescription("Sessions with the ensemble."))
	draining, err2 := m.Int64ObservableUpDownCounter(MetricSessionDraining, metric.WithUnit("{session}"), metric.WithDescription("Sessions that end with their last lock."))
	limit, err3 := m.Int64ObservableUpDownCounter(MetricSessionMax, metric.WithUnit("{session}"), metric.WithDescription("Sessions that the pool may have."))
	opened, err4 := m.Int64ObservableCounter(MetricSessionOpened, metric.WithUnit("{session}"), metric.WithDescription("Sessions opened."))
	hold, err5 := m.Float64ObservableGauge(MetricHoldLongest, metric.WithUnit("s"), metric.WithDescription("How long the oldest lock that is held has been held, without leaders of elections."))
	wait, err6 := m.Float64ObservableGauge(MetricWaitLongest, metric.WithUnit("s"), metric.WithDescription("How long the oldest acquisition that waits for other holders has waited, without candidates."))
	forgotten, err7 := m.Int64ObservableCounter(MetricForgotten, metric.WithUnit("{lock}"), metric.WithDescription("Locks that the program dropped without a Release."))
	reaped, err8 := m.Int64ObservableCounter(MetricSessionReaped, metric.WithUnit("{session}"), metric.WithDescription("Sessions of dead processes that were ended."))
	regressed, err9 := m.Int64ObservableUpDownCounter(MetricTokensRegressed, metric.WithUnit("{client}"), metric.WithDescription("Clients that acquire no more locks, because the ensemble has lost transactions."))
	backlog, err10 := m.Int64ObservableUpDownCounter(MetricBacklog, metric.WithUnit("{write}"), metric.WithDescription("Writes that wait until they are sent."))
	if err := oneline.Join(err1, err2, err3, err4, err5, err6, err7, err8, err9, err10); err != nil {
		return nil, err
	}
	client := metric.WithAttributes(AttrClient.String(strconv.FormatInt(registered.Add(1), 10)))
	connected, suspended, ended := inState(stateConnected), inState(stateSuspended), inState(stateEnded)
	return m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := c.Stats()
		o.ObserveInt64(count, int64(s.Connected), connected)
		o.ObserveInt64(count, int64(s.Suspended), suspended)
		o.ObserveInt64(count, int64(s.Open-s.Connected-s.Suspended), ended)
		o.ObserveInt64(draining, int64(s.Draining))
		o.ObserveInt64(limit, int64(s.MaxSessions))
		o.ObserveInt64(opened, int64(s.SessionsOpened))
		o.ObserveInt64(reaped, int64(s.SessionsReaped))
		o.ObserveFloat64(hold, s.LongestHold.Seconds(), client)
		o.ObserveFloat64(wait, s.LongestWait.Seconds(), client)
		o.ObserveInt64(forgotten, int64(s.Forgotten))
		o.ObserveInt64(backlog, int64(s.Backlog))
		clients := int64(0)
		if s.TokensRegressed {
			clients = 1
		}
		o.ObserveInt64(regressed, clients)
		return nil
	}, count, draining, limit, opened, hold, wait, forgotten, reaped, regressed, backlog)
}

func inState(state string) metric.MeasurementOption {
	return metric.WithAttributes(AttrSessionState.String(state))
}
