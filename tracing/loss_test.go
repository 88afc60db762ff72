package tracing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// tellsOfLoss checks a span's event and status after a loss.
func tellsOfLoss(t *testing.T, s sdktrace.ReadOnlySpan, lock *zklock.Lock, errorType string) {
	t.Helper()
	if s.Status().Code != codes.Error {
		t.Errorf("status of %s is %v, want an error", s.Name(), s.Status())
	}
	if events := s.Events(); len(events) != 1 || events[0].Name != tracing.EventLost {
		t.Errorf("events of %s are %v, want one %s", s.Name(), events, tracing.EventLost)
	} else {
		shows(t, s.Name(), events[0].Attributes, map[attribute.Key]string{
			tracing.AttrMode: "exclusive", tracing.AttrName: "m", tracing.AttrToken: lock.Token().String(), tracing.AttrErrorType: errorType})
	}
}

func TestLossIsReportedOnTheRequestThatHeldTheLock(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e, tracing.WithHoldSpan())
		ctx, request := p.request("pay")
		lock := must(t, ctx, p.Mutex("m"))
		e.ExpireAll()
		lost(lock)
		if err := lock.Release(ctx); !errors.Is(err, zklock.ErrLost) {
			t.Fatalf("Release: %v, want the loss", err)
		}
		request.End()

		tellsOfLoss(t, p.one("pay"), lock, "lost")
		if text := p.one("pay").Status().Description; !strings.Contains(text, `"m"`) {
			t.Errorf("status text is %q, want it to name the lock", text)
		}
		held, acquired, released := p.one(tracing.SpanHold), p.one(tracing.SpanAcquire), p.one(tracing.SpanRelease)
		tellsOfLoss(t, held, lock, "lost")
		childOf(t, held, request.SpanContext())
		linksTo(t, held, acquired)
		if acquired.Status().Code != codes.Unset {
			t.Error("the span of the successful acquisition has an error status")
		}
		linksTo(t, released, acquired)
		shows(t, "release", released.Attributes(), map[attribute.Key]string{tracing.AttrErrorType: "lost"})
		if released.Status().Code != codes.Error {
			t.Error("the span of the release of a lost lock has no error status")
		}
		p.measured(map[string]float64{
			"zklock.lost{error.type=lost,mode=exclusive}":              1,
			"zklock.held{mode=exclusive}":                              0,
			"zklock.hold.duration{mode=exclusive,release.reason=lost}": 1,
			"zklock.session.lost{}":                                    1,
		})
	})
}

func TestLossWithoutARequestIsCounted(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		lock := must(t, t.Context(), p.Mutex("m"))
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		lost(lock)
		p.measured(map[string]float64{
			"zklock.lost{error.type=closed,mode=exclusive}": 1,
			"zklock.lost{error.type=lost,mode=exclusive}":   0,
			"zklock.held{mode=exclusive}":                   0,
			"zklock.session.lost{}":                         0,
		})
	})
}

// The time from the end of a lock's context to its release is measured: after a loss, a close and a
// revocation. A loss that follows a revocation counts, and a lock that is released in time does not.
func TestTimeToStop(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		ask := func() {
			found, err := p.Contenders(t.Context(), "m")
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Revoke(t.Context(), "m", found[0].Node, "drain"); err != nil {
				t.Fatal(err)
			}
		}
		stops := func(lock *zklock.Lock, after time.Duration) {
			pass(after)
			_ = lock.Release(t.Context())
		}
		stops(must(t, t.Context(), p.Mutex("m")), time.Minute)
		p.measured(map[string]float64{"zklock.stop.duration{error.type=lost,mode=exclusive}": none})

		revoked, err := p.Mutex("m").Acquire(t.Context(), zklock.WithRevocable())
		if err != nil {
			t.Fatal(err)
		}
		ask()
		<-revoked.Revoked()
		stops(revoked, 3*time.Second)

		both, err := p.RWMutex("m").Writer().Acquire(t.Context(), zklock.WithRevocable())
		if err != nil {
			t.Fatal(err)
		}
		ask()
		<-both.Revoked()
		pass(5 * time.Second)
		e.ExpireAll()
		lost(both)
		stops(both, 7*time.Second)

		reader := must(t, t.Context(), p.RWMutex("m").Reader())
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		stops(reader, 11*time.Second)
		p.measured(map[string]float64{
			"zklock.stop.duration{error.type=revoked,mode=exclusive}":     1,
			"zklock.stop.duration.sum{error.type=revoked,mode=exclusive}": 3,
			"zklock.stop.duration{error.type=lost,mode=exclusive}":        1,
			"zklock.stop.duration.sum{error.type=lost,mode=exclusive}":    7,
			"zklock.stop.duration{error.type=closed,mode=shared}":         1,
			"zklock.stop.duration.sum{error.type=closed,mode=shared}":     11,
		})
	})
}

// If an operator deletes a queue node, that lock is lost, and not the session. All
// readers that share the node lose the lock.
func TestDeletedNodeLosesTheLocksAndNotTheSession(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		readers := p.RWMutex("m").Reader()
		a, b := must(t, t.Context(), readers), must(t, t.Context(), readers)
		e.Break(p.Mutex("m").Path())
		lost(a)
		lost(b)
		p.measured(map[string]float64{
			"zklock.lost{error.type=lost,mode=shared}":              2,
			"zklock.hold.duration{mode=shared,release.reason=lost}": 2,
			"zklock.held{mode=shared}":                              0,
			"zklock.session.lost{}":                                 0,
		})
	})
}

// The hold span lasts from the end of the acquisition to the release.
func TestHoldSpan(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e, tracing.WithHoldSpan())
		ctx, request := p.request("pay")
		lock := must(t, ctx, p.Mutex("m"))
		pass(holdTime)
		release(t, lock)
		request.End()
		held := p.one(tracing.SpanHold)
		childOf(t, held, request.SpanContext())
		linksTo(t, held, p.one(tracing.SpanAcquire))
		shows(t, "hold", held.Attributes(), map[attribute.Key]string{
			tracing.AttrMode: "exclusive", tracing.AttrName: "m", tracing.AttrToken: lock.Token().String()})
		if d := held.EndTime().Sub(held.StartTime()); d != holdTime {
			t.Errorf("the span lasts %v, want %v", d, holdTime)
		}
		if held.Status().Code != codes.Unset || len(held.Events()) > 0 {
			t.Errorf("status %v and events %v, want neither", held.Status(), held.Events())
		}
	})
}
