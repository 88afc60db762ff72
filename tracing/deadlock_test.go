package tracing_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// deadlock makes two processes wait for each other. It returns the one whose wait was ended.
func deadlock(t *testing.T, e *memdriver.Ensemble, opts ...tracing.Option) (victim, other *process) {
	t.Helper()
	other, victim = start(t, e, opts...), start(t, e, opts...)
	x, y := must(t, t.Context(), other.Mutex("x/1")), must(t, t.Context(), victim.Mutex("y/1"))
	done := later(func() {
		ctx, cancel := x.Context(t.Context())
		defer cancel()
		release(t, must(t, ctx, other.Mutex("y/1")))
		release(t, x)
	})
	pass(5 * time.Second)
	ctx, cancel := y.Context(t.Context())
	defer cancel()
	_, err := victim.Mutex("x/1").Acquire(ctx)
	if !errors.As(err, new(*zklock.DeadlockError)) {
		t.Fatal(err)
	}
	release(t, y)
	done()
	return victim, other
}

// The wait that a deadlock has ended has failed, says so, and links to the waits of the other members.
func TestDeadlockLinksToTheOtherWaits(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		victim, other := deadlock(t, e)
		held, waited := other.ended(tracing.SpanAcquire)[0], other.ended(tracing.SpanAcquire)[1]
		wait := victim.one(tracing.SpanWait)
		linksTo(t, wait, held, waited) // the holder's acquisition, and its wait
		if n := len(wait.Events()); n != 1 || wait.Events()[0].Name != tracing.EventDeadlock {
			t.Fatalf("%d events: %v", n, wait.Events())
		}
		shows(t, "event", wait.Events()[0].Attributes, map[attribute.Key]string{tracing.AttrDeadlockWaits: "2"})
		shows(t, "wait", wait.Attributes(), map[attribute.Key]string{tracing.AttrOutcome: tracing.OutcomeError, tracing.AttrErrorType: "deadlock"})
		if s := wait.Status(); s.Code != codes.Error || !strings.Contains(s.Description, "holds y/1 and waits for x/1") {
			t.Errorf("status %+v", s)
		}
		linksTo(t, other.one(tracing.SpanWait), victim.ended(tracing.SpanAcquire)[0])
		if n := len(other.one(tracing.SpanWait).Events()); n != 0 {
			t.Errorf("%d events of the wait that went on", n)
		}
		victim.measured(map[string]float64{
			"zklock.deadlocks{mode=exclusive}":                                          1,
			"zklock.wait.duration{error.type=deadlock,mode=exclusive,outcome=error}":    1,
			"zklock.acquire.duration{error.type=deadlock,mode=exclusive,outcome=error}": 1,
			"zklock.acquire.duration{mode=exclusive,outcome=acquired}":                  1,
		})
		other.measured(map[string]float64{"zklock.deadlocks{mode=exclusive}": 0}) // so that a rate shows the first one
	})
}

func TestDeadlockShowsNoNamesThatAreNotShown(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		group := func(name string) string { g, _, _ := strings.Cut(name, "/"); return g }
		victim, _ := deadlock(t, e, tracing.WithName(tracing.OmitName), tracing.WithNameAttribute(group))
		for _, s := range victim.spans.Ended() {
			if strings.Contains(s.Status().Description, "/1") {
				t.Errorf("%s: %s", s.Name(), s.Status().Description)
			}
		}
		victim.measured(map[string]float64{"zklock.deadlocks{mode=exclusive,name=x}": 1})
	})
}
