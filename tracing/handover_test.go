package tracing_test

import (
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestLocalHandoverLinksToTheRequestBefore(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		fastCtx, fast := p.request("fast")
		slowCtx, slow := p.request("slow")
		held := must(t, fastCtx, p.Mutex("m"))
		var got *zklock.Lock
		done := later(func() { got = must(t, slowCtx, p.Mutex("m")) })
		pass(20 * time.Millisecond)
		release(t, held)
		done()
		if got.Token().Turn == 0 {
			t.Fatal("the place was not handed over")
		}
		release(t, got)
		fast.End()
		slow.End()

		acquired, released := p.ended(tracing.SpanAcquire), p.ended(tracing.SpanRelease)
		if len(acquired) != 2 || len(released) != 2 {
			t.Fatalf("%d acquire and %d release spans, want 2 of each", len(acquired), len(released))
		}
		waited := p.one(tracing.SpanWait)
		childOf(t, waited, acquired[1].SpanContext())
		linksTo(t, waited, acquired[0])
		linksTo(t, released[0], acquired[0], acquired[1]) // its own acquisition, and the next holder's
		linksTo(t, released[1], acquired[1])
		shows(t, "first release", released[0].Attributes(), map[attribute.Key]string{tracing.AttrHanded: "true"})
		shows(t, "second release", released[1].Attributes(), map[attribute.Key]string{tracing.AttrHanded: "false"})
		p.measured(map[string]float64{
			"zklock.handovers{mode=exclusive}":                                 1,
			"zklock.wait.duration{mode=exclusive,outcome=acquired}":            1,
			"zklock.wait.duration.sum{mode=exclusive,outcome=acquired}":        0.02,
			"zklock.hold.duration{mode=exclusive,release.reason=released}":     2,
			"zklock.hold.duration.sum{mode=exclusive,release.reason=released}": 0.02,
		})
	})
}

// A place that is handed over keeps the traceparent of the request that created it.
// Each release links to the next holder's request. So these links lead a waiter in
// another process to the current holder.
func TestHandoversAreAChainOfLinks(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p, other := start(t, e), start(t, e)
		locks := make(chan *zklock.Lock, 2)
		first := must(t, t.Context(), p.Mutex("m"))
		var waits []func()
		for range cap(locks) {
			waits = append(waits, later(func() { locks <- must(t, t.Context(), p.Mutex("m")) }))
		}
		outside := later(func() { release(t, must(t, t.Context(), other.Mutex("m"))) })
		release(t, first)
		release(t, <-locks)
		pass(time.Second)
		release(t, <-locks)
		for _, wait := range waits {
			wait()
		}
		outside()
		acquired, released := p.ended(tracing.SpanAcquire), p.ended(tracing.SpanRelease)
		if len(acquired) != 3 || len(released) != 3 {
			t.Fatalf("%d acquire and %d release spans, want 3 of each", len(acquired), len(released))
		}
		linksTo(t, other.one(tracing.SpanWait), acquired[0])
		linksTo(t, released[0], acquired[0], acquired[1])
		linksTo(t, released[1], acquired[1], acquired[2])
		linksTo(t, released[2], acquired[2])
	})
}

// The span of a wait for a kept name links to the acquisition that holds it now, and to no earlier
// use of the name.
func TestWaitForAKeptNameLinksToItsHolder(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p, other := startWith(t, zklock.Config{Connector: e.Connector(), Keep: time.Hour}), start(t, e)
		for p.Stats().Kept == 0 {
			release(t, must(t, t.Context(), p.Mutex("m")))
		}
		release(t, must(t, t.Context(), p.Mutex("m")))
		held := must(t, t.Context(), p.Mutex("m"))
		outside := later(func() { release(t, must(t, t.Context(), other.Mutex("m"))) })
		pass(time.Second)
		release(t, held)
		outside()
		acquired := p.ended(tracing.SpanAcquire)
		linksTo(t, other.one(tracing.SpanWait), acquired[len(acquired)-1])
	})
}

// The span of a wait links to each holder that the waiter learns of: to the one that the place was
// created for, and to the one that stays after a hand-over.
func TestWaitLinksToTheHolderThatStays(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p, other := start(t, e), start(t, e)
		held := must(t, t.Context(), p.Mutex("m"))
		got := make(chan *zklock.Lock, 1)
		next := later(func() { got <- must(t, t.Context(), p.Mutex("m")) })
		outside := later(func() { release(t, must(t, t.Context(), other.Mutex("m"))) })
		release(t, held)
		pass(5 * time.Second)
		release(t, <-got)
		next()
		outside()
		acquired := p.ended(tracing.SpanAcquire)
		linksTo(t, other.one(tracing.SpanWait), acquired[0], acquired[1])
	})
}
