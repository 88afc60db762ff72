package tracing_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// An idle election is neither the longest hold nor the longest wait, and its waits are not among those
// for other holders, when they end. All that is measured of it has a mark.
func TestCandidaciesAreMarkedInMetrics(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p, q := start(t, e), start(t, e)
		stand := func(c *zklock.Client) (resign func()) {
			ctx, cancel := context.WithCancel(t.Context())
			done := later(func() {
				_ = election.New(c, "reminders", election.WithLogger(nil)).Run(ctx, func(ctx context.Context, _ *election.Term) error { <-ctx.Done(); return nil })
			})
			return func() { cancel(); done(); synctest.Wait() }
		}
		resign := stand(p.Client)
		defer stand(q.Client)()
		lock := must(t, t.Context(), q.Mutex("orders/42"))
		pass(84 * time.Minute)
		for who, c := range map[string]*zklock.Client{"leader": p.Client, "candidate": q.Client} {
			reader := sdkmetric.NewManualReader()
			registration, err := tracing.RegisterStats(c, tracing.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
			if err != nil {
				t.Fatal(err)
			}
			wantHold := 0.0
			if who == "candidate" {
				wantHold = (84 * time.Minute).Seconds() // the order's
			}
			for series, v := range (&process{t: t, reader: reader}).values() {
				if strings.HasPrefix(series, "zklock.hold.longest") && v != wantHold || strings.HasPrefix(series, "zklock.wait.longest") && v != 0 {
					t.Errorf("of the %s, %s is %v", who, series, v)
				}
			}
			if err := registration.Unregister(); err != nil {
				t.Error(err)
			}
		}
		p.measured(map[string]float64{"zklock.held{candidacy=true,mode=exclusive}": 1, "zklock.lost{candidacy=true,error.type=lost,mode=exclusive}": 0})
		q.measured(map[string]float64{"zklock.held{mode=exclusive}": 1, "zklock.waiting{candidacy=true,mode=exclusive}": 1, "zklock.wait.duration{}": none})
		resign()
		release(t, lock)
		p.measured(map[string]float64{"zklock.hold.duration{candidacy=true,mode=exclusive,release.reason=released}": 1, "zklock.hold.duration.sum{candidacy=true,mode=exclusive,release.reason=released}": 84 * 60})
		q.measured(map[string]float64{
			"zklock.wait.duration{}":                                                  none,
			"zklock.waiting{candidacy=true,mode=exclusive}":                           0,
			"zklock.held{candidacy=true,mode=exclusive}":                              1,
			"zklock.held{mode=exclusive}":                                             0,
			"zklock.acquire.duration{candidacy=true,mode=exclusive,outcome=acquired}": 1, "zklock.acquire.duration.sum{candidacy=true,mode=exclusive,outcome=acquired}": 84 * 60,
			"zklock.acquire.duration{mode=exclusive,outcome=acquired}": 1, "zklock.acquire.duration.sum{mode=exclusive,outcome=acquired}": 0,
		})
		for _, name := range []string{tracing.SpanWait, tracing.SpanAcquire} {
			found := q.ended(name)
			shows(t, name, found[len(found)-1].Attributes(), map[attribute.Key]string{"zklock.candidacy": "true"})
		}
	})
}
