package tracing_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// holdTime is how long tests hold a lock if the exact time is not important.
const holdTime = 3 * time.Second

func TestSessionsThatFlapAreCounted(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		lock := must(t, t.Context(), p.Mutex("m"))
		pass(15 * time.Second) // heartbeats
		if n := p.values()["zklock.lease.remaining{}"]; n < 2 {
			t.Errorf("the lease was measured %v times, want one at each heartbeat", n)
		}
		if sum, n := p.values()["zklock.lease.remaining.sum{}"], p.values()["zklock.lease.remaining{}"]; sum/n < 5 || sum/n > 10 {
			t.Errorf("the lease was %vs on average, want most of a session timeout of 10s", sum/n)
		}
		e.Partition(memdriver.AroundClients(0).Reset())
		pass(2 * time.Second) // shorter than the lease
		e.Heal()
		pass(2 * time.Second)
		if lock.Err() != nil {
			t.Fatalf("the lock was lost: %v", lock.Err())
		}
		p.measured(map[string]float64{"zklock.session.reconnects{}": 1, "zklock.session.lost{}": 0})
		e.Partition(memdriver.AroundClients(0))
		lost(lock)
		pass(20 * time.Second) // until the ensemble has expired the session too
		e.Heal()
		pass(10 * time.Second)
		p.measured(map[string]float64{"zklock.session.reconnects{}": 1, "zklock.session.lost{}": 1})
	})
}

func TestRegisterStatsReportsSessions(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p, q := start(t, e), start(t, e)
		lock := must(t, t.Context(), p.Mutex("m"))
		defer release(t, lock)
		reader := sdkmetric.NewManualReader()
		both := tracing.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
		first, err := tracing.RegisterStats(p.Client, both)
		if err != nil {
			t.Fatal(err)
		}
		second, err := tracing.RegisterStats(q.Client, both)
		if err != nil {
			t.Fatal(err)
		}
		seen := &process{t: t, reader: reader}
		seen.measured(map[string]float64{
			"zklock.sessions{session.state=connected}": 1,
			"zklock.sessions{session.state=suspended}": 0,
			"zklock.sessions{session.state=ended}":     0,
			"zklock.session.draining{}":                0,
			"zklock.session.max{}":                     float64(p.Stats().MaxSessions + q.Stats().MaxSessions),
			"zklock.session.opened{}":                  1,
			"zklock.session.reaped{}":                  0,
		})
		e.Partition(memdriver.AroundClients(0))
		pass(8 * time.Second)
		seen.measured(map[string]float64{
			"zklock.sessions{session.state=connected}": 0,
			"zklock.sessions{session.state=suspended}": 1,
			"zklock.sessions{session.state=ended}":     0,
		})
		e.Heal()
		pass(time.Second)
		if err := first.Unregister(); err != nil {
			t.Fatal(err)
		}
		seen.measured(map[string]float64{"zklock.session.max{}": float64(q.Stats().MaxSessions)})
		if err := second.Unregister(); err != nil {
			t.Fatal(err)
		}
		if got := seen.values(); len(got) > 0 {
			t.Errorf("%v is still reported after Unregister", got)
		}
	})
	if _, err := tracing.RegisterStats(nil); err == nil {
		t.Error("RegisterStats accepted a nil Client")
	}
}

// The longest hold and wait of each client have a series of their own: they cannot be added.
func TestRegisterStatsReportsTheLongestHoldAndWait(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p, q := start(t, e), start(t, e)
		reader := sdkmetric.NewManualReader()
		both := tracing.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
		for _, c := range []*zklock.Client{p.Client, q.Client} {
			registration, err := tracing.RegisterStats(c, both)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = registration.Unregister() }()
		}
		seen := &process{t: t, reader: reader}
		longest := func(metric string) (seconds []float64) {
			for series, v := range seen.values() {
				if strings.HasPrefix(series, metric+"{client=") {
					seconds = append(seconds, v)
				}
			}
			slices.Sort(seconds)
			return seconds
		}
		want := func(metric string, least, most float64) {
			t.Helper()
			if got := longest(metric); len(got) != 2 || got[0] != least || got[1] != most {
				t.Errorf("%s: %v, want %v and %v", metric, got, least, most)
			}
		}
		want("zklock.hold.longest", 0, 0)
		lock := must(t, t.Context(), p.Mutex("m"))
		pass(40 * time.Second)
		waited := make(chan *zklock.Lock)
		go func() { waited <- must(t, t.Context(), q.Mutex("m")) }()
		pass(20 * time.Second)
		want("zklock.hold.longest", 0, 60)
		want("zklock.wait.longest", 0, 20)
		release(t, lock)
		second := <-waited
		want("zklock.wait.longest", 0, 0)
		release(t, second)
		seen.measured(map[string]float64{"zklock.forgotten{}": 0})
	})
}

// TestLostTransactionsAreMeasured: the metric is the number of clients that acquire no more locks.
func TestLostTransactionsAreMeasured(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		restore := memcontrol.Of(e).Backup()
		p, q := start(t, e), start(t, e)
		reader := sdkmetric.NewManualReader()
		both := tracing.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
		for _, c := range []*zklock.Client{p.Client, q.Client} {
			registration, err := tracing.RegisterStats(c, both)
			if err != nil {
				t.Fatal(err)
			}
			defer registration.Unregister()
		}
		for range 20 {
			release(t, must(t, t.Context(), p.Mutex("m")))
		}
		seen := &process{t: t, reader: reader}
		seen.measured(map[string]float64{"zklock.tokens.regressed{}": 0})
		restore(time.Minute)
		pass(2 * time.Minute)
		if _, err := p.Mutex("m").Acquire(t.Context()); zklock.Reason(err) != "token_regression" {
			t.Errorf("%v, want the reason token_regression", err)
		}
		seen.measured(map[string]float64{"zklock.tokens.regressed{}": 1})
	})
}

// While two transactions are in flight, further writes of many callers are sent in one
// transaction.
func TestGroupSizesAreMeasured(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		const callers = 20
		for i := range callers { // a name's first write may go alone
			release(t, must(t, t.Context(), p.Mutex(strings.Repeat("x", i+1))))
		}
		before := groups(p)
		done := later(func() {
			results := make(chan error, callers)
			for i := range callers {
				go func() {
					l, err := p.Mutex(strings.Repeat("x", i+1)).Acquire(t.Context())
					if err == nil {
						err = l.Release(t.Context())
					}
					results <- err
				}()
			}
			for range callers {
				if err := <-results; err != nil {
					t.Error(err)
				}
			}
		})
		done()
		after := groups(p)
		if members := after.members - before.members; members != 2*callers {
			t.Errorf("%v writes were counted, want %d", members, 2*callers)
		}
		if n := after.groups - before.groups; n >= callers || n < 2 {
			t.Errorf("the writes were sent in %v transactions, want at least 2 and fewer than %d", n, callers)
		}
	}, memdriver.WithLatency(time.Millisecond))
}

type grouping struct{ groups, members float64 }

func groups(p *process) (g grouping) {
	for key, v := range p.values() {
		switch {
		case strings.HasPrefix(key, "zklock.operation.group_size{"):
			g.groups += v
		case strings.HasPrefix(key, "zklock.operation.group_size.sum{"):
			g.members += v
		}
	}
	return g
}

func TestInstrumentsAreDescribed(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		lock := must(t, t.Context(), p.Mutex("m"))
		waited := later(func() { release(t, must(t, t.Context(), p.Mutex("m"))) })
		pass(holdTime)
		release(t, lock)
		waited()
		var rm metricdata.ResourceMetrics
		if err := p.reader.Collect(t.Context(), &rm); err != nil {
			t.Fatal(err)
		}
		if len(rm.ScopeMetrics) != 1 || rm.ScopeMetrics[0].Scope.Name != tracing.ScopeName || rm.ScopeMetrics[0].Scope.Version != tracing.Version {
			t.Fatalf("scopes %+v, want only %s", rm.ScopeMetrics, tracing.ScopeName)
		}
		for _, m := range rm.ScopeMetrics[0].Metrics {
			if m.Description == "" || m.Unit == "" {
				t.Errorf("%s has description %q and unit %q", m.Name, m.Description, m.Unit)
			}
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok {
				continue
			}
			bounds := h.DataPoints[0].Bounds
			if m.Unit != "s" || bounds[0] != 0.001 || bounds[len(bounds)-1] != 300 || !slices.IsSorted(bounds) {
				t.Errorf("%s has unit %s and buckets %v, want 1ms to 5min", m.Name, m.Unit, bounds)
			}
		}
	})
}

// If a Client has two Hooks, each finds only its own spans and grants.
func TestTwoHooksDoNotMix(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p, q := start(t, e), start(t, e)
		hooks := zklock.JoinHooks(p.hooks, q.hooks)
		c, err := zklock.OpenConnector(e.Connector(), zklock.WithHooks(hooks))
		if err != nil {
			t.Fatal(err)
		}
		lock := must(t, t.Context(), c.Mutex("m"))
		waited := later(func() { release(t, must(t, t.Context(), c.Mutex("m"))) })
		pass(holdTime)
		release(t, lock)
		waited()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for _, x := range []*process{p, q} {
			x.one(tracing.SpanWait)
			x.measured(map[string]float64{
				"zklock.hold.duration{mode=exclusive,release.reason=released}": 2,
				"zklock.held{mode=exclusive}":                                  0,
			})
		}
	})
}
