package tracing_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A handle that joined with Reenter has its own acquisition and release.
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
			t.Errorf("zklock.held is %v, want 2", v)
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
			t.Errorf("zklock.held is %v, want 2", v)
		}
		done := later(func() { release(t, must(t, t.Context(), other.RWMutex("m").Writer())) })
		release(t, a)
		release(t, b)
		done()

		linksTo(t, other.one(tracing.SpanWait), p.ended(tracing.SpanAcquire)[0]) // the acquisition that created the shared node
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
			t.Errorf("zklock.held is %v, want 2", v)
		}
		release(t, a)
		release(t, b)
		p.measured(map[string]float64{"zklock.held{mode=permit}": 0})
	})
}

// Acquisitions that are refused before they send a request are recorded like all others.
func TestRefusedRequests(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		for _, a := range []zklock.Acquirer{p.Mutex("a//b"), p.Mutex("a\xff"), p.Semaphore("s", 0), zklock.All(p.Mutex("a"), nil), p.RWMutex("/").Reader()} {
			if _, err := a.Acquire(t.Context()); err == nil {
				t.Errorf("%T: Acquire succeeded, want an error", a)
			}
		}
		var types []string
		for _, s := range p.ended(tracing.SpanAcquire) {
			kvs := attributes(s.Attributes())
			if kvs[tracing.AttrOutcome] != tracing.OutcomeError || s.Status().Code != codes.Error || !utf8.ValidString(kvs[tracing.AttrName]) {
				t.Errorf("the span has attributes %v and status %v, want an error and a name in UTF-8", kvs, s.Status())
			}
			types = append(types, kvs["error.type"])
		}
		if want := []string{"invalid_name", "invalid_name", "conflict", "misuse", "invalid_name"}; !slices.Equal(types, want) {
			t.Errorf("error types %v, want %v", types, want)
		}
		p.measured(map[string]float64{
			"zklock.acquire.duration{error.type=invalid_name,mode=exclusive,outcome=error}": 2,
			"zklock.acquire.duration{error.type=invalid_name,mode=shared,outcome=error}":    1,
			"zklock.acquire.duration{error.type=misuse,mode=exclusive,outcome=error}":       1,
			"zklock.acquire.duration{error.type=conflict,mode=permit,outcome=error}":        1,
		})
	})
}

// The metric and Stats count the same acquisitions: those that wait for other holders,
// and not those that wait for the ensemble.
func TestWaitingIsOneNumber(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p, other := start(t, e), start(t, e)
		if err := p.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		same := func(when string, waiting, acquiring int) {
			t.Helper()
			st, metric := p.Stats(), 0.0
			for name, v := range p.values() {
				if strings.HasPrefix(name, tracing.MetricWaiting+"{") {
					metric += v
				}
			}
			if st.Waiting != waiting || int(metric) != waiting || st.Acquiring != acquiring || (st.LongestWait > 0) != (waiting > 0) {
				t.Errorf("%s: Stats has %d waiting, the longest for %v, and %d acquiring; the metric %v; want %d waiting, %d acquiring",
					when, st.Waiting, st.LongestWait, st.Acquiring, metric, waiting, acquiring)
			}
		}
		free := later(func() { release(t, must(t, t.Context(), p.Mutex("free"))) })
		pass(time.Millisecond)
		same("asking the ensemble", 0, 1)
		free()
		same("at the end", 0, 0)

		held := must(t, t.Context(), other.Mutex("m"))
		var done []func()
		for _, a := range []zklock.Acquirer{p.Mutex("m"), p.Mutex("m"), p.RWMutex("m").Reader()} {
			done = append(done, later(func() {
				l := must(t, t.Context(), a)
				pass(time.Second)
				release(t, l)
			}))
		}
		pass(time.Second)
		same("behind another process, and each other", 3, 3)
		release(t, held)
		pass(500 * time.Millisecond)
		same("behind the first", 2, 2)
		for _, d := range done {
			d()
		}
		same("after all", 0, 0)
	}, memdriver.WithLatency(10*time.Millisecond))
}
