package tracing_test

import (
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A handle that joined with Reenter is an acquisition and a release of its own.
func TestReentry(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		outer := must(t, t.Context(), p.Mutex("m"))
		ctx, cancel := outer.Context(t.Context())
		defer cancel()
		if _, err := p.Mutex("m").Acquire(ctx); !errors.Is(err, zklock.ErrDeadlock) {
			t.Fatalf("Acquire: %v, want a deadlock", err)
		}
		inner := must(t, ctx, p.Mutex("m"), zklock.Reenter())
		if v := p.values()["zklock.held{mode=exclusive}"]; v != 2 {
			t.Errorf("%v held, want 2", v)
		}
		release(t, inner)
		release(t, outer)

		acquired, released := p.ended(tracing.SpanAcquire), p.ended(tracing.SpanRelease)
		if len(acquired) != 3 || len(released) != 2 {
			t.Fatalf("%d acquire and %d release spans, want 3 and 2", len(acquired), len(released))
		}
		linksTo(t, released[0], acquired[2])
		linksTo(t, released[1], acquired[0])
		shows(t, "inner release", released[0].Attributes(), map[attribute.Key]string{tracing.AttrHanded: "true"})
		p.measured(map[string]float64{
			"zklock.acquire.duration{mode=exclusive,outcome=acquired}":                  2,
			"zklock.acquire.duration{error.type=deadlock,mode=exclusive,outcome=error}": 1,
			"zklock.held{mode=exclusive}":                                               0,
		})
	})
}

func TestSharedReaders(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p, other := start(t, e), start(t, e)
		a := must(t, t.Context(), p.RWMutex("m").Reader())
		b := must(t, t.Context(), p.RWMutex("m").Reader())
		if v := p.values()["zklock.held{mode=shared}"]; v != 2 {
			t.Errorf("%v held, want 2", v)
		}
		done := later(func() { release(t, must(t, t.Context(), other.RWMutex("m").Writer())) })
		release(t, a)
		release(t, b)
		done()

		linksTo(t, other.one(tracing.SpanWait), p.ended(tracing.SpanAcquire)[0]) // whose node it is
		for i, s := range p.ended(tracing.SpanRelease) {
			linksTo(t, s, p.ended(tracing.SpanAcquire)[i])
			shows(t, "release", s.Attributes(), map[attribute.Key]string{tracing.AttrMode: "shared"})
		}
		p.measured(map[string]float64{
			"zklock.acquire.duration{mode=shared,outcome=acquired}":     2,
			"zklock.hold.duration{mode=shared,release.reason=released}": 2,
			"zklock.held{mode=shared}":                                  0,
		})
	})
}

// A Downgrade changes the mode, and must not leave the gauges unbalanced.
func TestDowngradeKeepsTheModeOfTheAcquisition(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		lock := must(t, t.Context(), p.RWMutex("m").Writer())
		if err := lock.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		release(t, lock)
		shows(t, "release", p.one(tracing.SpanRelease).Attributes(), map[attribute.Key]string{tracing.AttrMode: "exclusive"})
		p.measured(map[string]float64{
			"zklock.held{mode=exclusive}":                                  0,
			"zklock.hold.duration{mode=exclusive,release.reason=released}": 1,
		})
	})
}

func TestAllIsOneAcquisition(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p, other := start(t, e), start(t, e)
		held := must(t, t.Context(), other.Mutex("b"))
		done := later(func() { release(t, must(t, t.Context(), zklock.All(p.Mutex("b"), p.Mutex("a")))) })
		pass(time.Second)
		release(t, held)
		done()
		acquired := p.one(tracing.SpanAcquire)
		shows(t, "acquire", acquired.Attributes(), map[attribute.Key]string{
			tracing.AttrName: "a,b", tracing.AttrMode: "exclusive", tracing.AttrOutcome: tracing.OutcomeAcquired})
		waited := p.one(tracing.SpanWait)
		childOf(t, waited, acquired.SpanContext())
		linksTo(t, waited, other.one(tracing.SpanAcquire))
		linksTo(t, p.one(tracing.SpanRelease), acquired)
		p.measured(map[string]float64{
			"zklock.acquire.duration{mode=exclusive,outcome=acquired}":     1,
			"zklock.acquire.duration.sum{mode=exclusive,outcome=acquired}": 1,
			"zklock.hold.duration{mode=exclusive,release.reason=released}": 1,
			"zklock.held{mode=exclusive}":                                  0,
		})
	})
}

func TestSemaphoreIsOfModePermit(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		a := must(t, t.Context(), p.Semaphore("s", 2))
		b := must(t, t.Context(), p.Semaphore("s", 2))
		if v := p.values()["zklock.held{mode=permit}"]; v != 2 {
			t.Errorf("%v held, want 2", v)
		}
		release(t, a)
		release(t, b)
		p.measured(map[string]float64{"zklock.held{mode=permit}": 0})
	})
}
