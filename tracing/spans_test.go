package tracing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

func TestUncontendedAcquireAndReleaseAreTwoLinkedSpans(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		ctx, request := p.request("pay")
		lock := must(t, ctx, p.Mutex("orders/42"))
		pass(3 * time.Second)
		if err := lock.Release(ctx); err != nil {
			t.Fatal(err)
		}
		request.End()

		acquired, released := p.one(tracing.SpanAcquire), p.one(tracing.SpanRelease)
		childOf(t, acquired, request.SpanContext())
		childOf(t, released, request.SpanContext())
		linksTo(t, acquired)
		linksTo(t, released, acquired)
		if n := len(p.ended(tracing.SpanWait)) + len(p.ended(tracing.SpanHold)); n > 0 {
			t.Errorf("%d spans of waiting or holding, want none", n)
		}
		for _, s := range p.spans.Ended()[:2] {
			if s.SpanKind() != trace.SpanKindClient || s.Status().Code != codes.Unset {
				t.Errorf("%s is of kind %v with status %v, want kind client without a status", s.Name(), s.SpanKind(), s.Status())
			}
			if scope := s.InstrumentationScope(); scope.Name != tracing.ScopeName || scope.Version != tracing.Version || scope.SchemaURL == "" {
				t.Errorf("the scope is %+v", scope)
			}
		}
		token := lock.Token().String()
		shows(t, "acquire", acquired.Attributes(), map[attribute.Key]string{
			tracing.AttrMode: "exclusive", tracing.AttrTry: "false", tracing.AttrOutcome: tracing.OutcomeAcquired,
			tracing.AttrName: "orders/42", tracing.AttrToken: token, tracing.AttrErrorType: ""})
		shows(t, "release", released.Attributes(), map[attribute.Key]string{
			tracing.AttrMode: "exclusive", tracing.AttrName: "orders/42", tracing.AttrToken: token, tracing.AttrHanded: "false"})
		if attributes(acquired.Attributes())[tracing.AttrServerAddress] == "" || attributes(released.Attributes())[tracing.AttrServerAddress] == "" {
			t.Error("a span does not show the server")
		}
		p.measured(map[string]float64{
			"zklock.acquire.duration{mode=exclusive,outcome=acquired}":         1,
			"zklock.hold.duration{mode=exclusive,release.reason=released}":     1,
			"zklock.hold.duration.sum{mode=exclusive,release.reason=released}": 3,
			"zklock.held{mode=exclusive}":                                      0,
			"zklock.operation.group_size{operation.kind=enqueue}":              1,
			"zklock.operation.group_size.sum{operation.kind=enqueue}":          1,
			"zklock.operation.group_size{operation.kind=release}":              1,
			"zklock.operation.group_size.sum{operation.kind=release}":          1,
		})
	})
}

// Of two processes, the wait span of one links to the acquire span of the other, in
// another trace.
func TestWaitSpanLinksToTheRequestThatHeldTheLock(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		holder, waiter := start(t, e), start(t, e)
		fastCtx, fast := holder.request("fast")
		slowCtx, slow := waiter.request("slow")
		held := must(t, fastCtx, holder.Mutex("orders/42"))
		done := later(func() { release(t, must(t, slowCtx, waiter.Mutex("orders/42"))) })
		if v := waiter.values()["zklock.waiting{mode=exclusive}"]; v != 1 {
			t.Errorf("%v acquisitions wait, want 1", v)
		}
		pass(5 * time.Second)
		release(t, held)
		done()
		fast.End()
		slow.End()

		acquired, waited := waiter.one(tracing.SpanAcquire), waiter.one(tracing.SpanWait)
		childOf(t, acquired, slow.SpanContext())
		childOf(t, waited, acquired.SpanContext())
		linksTo(t, waited, holder.one(tracing.SpanAcquire))
		if waited.Links()[0].SpanContext.TraceID() != fast.SpanContext().TraceID() {
			t.Error("the link does not lead to the trace of the request that held the lock")
		}
		if n := len(holder.ended(tracing.SpanWait)); n > 0 {
			t.Errorf("%d wait spans in the process that did not wait, want none", n)
		}
		shows(t, "wait", waited.Attributes(), map[attribute.Key]string{
			tracing.AttrMode: "exclusive", tracing.AttrName: "orders/42", tracing.AttrPosition: "1", tracing.AttrOutcome: tracing.OutcomeAcquired})
		shows(t, "acquire", acquired.Attributes(), map[attribute.Key]string{tracing.AttrOutcome: tracing.OutcomeAcquired})
		if node := attributes(waited.Attributes())[tracing.AttrAheadNode]; node == "" {
			t.Error("the wait span does not show the contender ahead")
		}
		waiter.measured(map[string]float64{
			"zklock.acquire.duration{mode=exclusive,outcome=acquired}":     1,
			"zklock.acquire.duration.sum{mode=exclusive,outcome=acquired}": 5,
			"zklock.wait.duration{mode=exclusive,outcome=acquired}":        1,
			"zklock.wait.duration.sum{mode=exclusive,outcome=acquired}":    5,
			"zklock.waiting{mode=exclusive}":                               0,
		})
	})
}

// The second contender leaves the queue, so the third waits for the first from then on.
// Its wait span links to both, and has an event for the change.
func TestWaitSpanRecordsEachContenderAhead(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		first, second, third := start(t, e), start(t, e), start(t, e)
		held := must(t, t.Context(), first.Mutex("m"))
		impatient, hangUp := context.WithCancel(t.Context())
		gone := later(func() {
			if _, err := second.Mutex("m").Acquire(impatient); !errors.Is(err, context.Canceled) {
				t.Errorf("Acquire: %v, want context.Canceled", err)
			}
		})
		done := later(func() { release(t, must(t, t.Context(), third.Mutex("m"))) })
		hangUp()
		gone()
		pass(time.Second)
		release(t, held)
		done()

		waited := third.one(tracing.SpanWait)
		linksTo(t, waited, second.one(tracing.SpanAcquire), first.one(tracing.SpanAcquire))
		events := waited.Events()
		if len(events) != 1 || events[0].Name != tracing.EventAhead {
			t.Fatalf("events %v, want one %s", events, tracing.EventAhead)
		}
		shows(t, "wait", waited.Attributes(), map[attribute.Key]string{tracing.AttrPosition: "2"})
		shows(t, "ahead", events[0].Attributes, map[attribute.Key]string{tracing.AttrPosition: "1"})
	})
}

func TestAnswersAreNoErrors(t *testing.T) {
	deadline := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, 2*time.Second)
	}
	cancelled := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(2*time.Second, cancel)
		return ctx, cancel
	}
	plain := func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }
	for _, c := range []struct {
		name, outcome string
		ctx           func(context.Context) (context.Context, context.CancelFunc)
		opt           zklock.AcquireOption
		waits         float64
	}{
		{"deadline", tracing.OutcomeTimeout, deadline, nil, 2},
		{"cancel", tracing.OutcomeCanceled, cancelled, nil, 2},
		{"WithWait", tracing.OutcomeContended, plain, zklock.WithWait(2 * time.Second), 2},
		{"try", tracing.OutcomeContended, plain, zklock.WithWait(0), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			world(t, func(t *testing.T, e *memdriver.Ensemble) {
				holder, waiter := start(t, e), start(t, e)
				defer release(t, must(t, t.Context(), holder.Mutex("m")))
				ctx, stop := c.ctx(t.Context())
				defer stop()
				var opts []zklock.AcquireOption
				if c.opt != nil {
					opts = append(opts, c.opt)
				}
				if lock, err := waiter.Mutex("m").Acquire(ctx, opts...); err == nil {
					t.Fatalf("Acquire returned %v, want an error", lock)
				}
				acquired := waiter.one(tracing.SpanAcquire)
				shows(t, "acquire", acquired.Attributes(), map[attribute.Key]string{
					tracing.AttrOutcome: c.outcome, tracing.AttrErrorType: "", tracing.AttrToken: ""})
				if s := acquired.Status(); s.Code != codes.Unset {
					t.Errorf("status %v, want none", s)
				}
				want := map[string]float64{
					"zklock.acquire.duration{mode=exclusive,outcome=" + c.outcome + "}":     1,
					"zklock.acquire.duration.sum{mode=exclusive,outcome=" + c.outcome + "}": c.waits,
				}
				if c.waits > 0 {
					waited := waiter.one(tracing.SpanWait)
					shows(t, "wait", waited.Attributes(), map[attribute.Key]string{tracing.AttrOutcome: c.outcome, tracing.AttrErrorType: ""})
					if s := waited.Status(); s.Code != codes.Unset {
						t.Errorf("status %v, want none", s)
					}
					linksTo(t, waited, holder.one(tracing.SpanAcquire))
					want["zklock.waiting{mode=exclusive}"] = 0
					want["zklock.wait.duration{mode=exclusive,outcome="+c.outcome+"}"] = 1
				}
				waiter.measured(want)
				if v, ok := waiter.values()["zklock.held{mode=exclusive}"]; ok {
					t.Errorf("zklock.held is %v, want no value: no lock was held", v)
				}
			})
		})
	}
}

func TestFailuresAreErrors(t *testing.T) {
	world(t, func(t *testing.T, e *memdriver.Ensemble) {
		p := start(t, e)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Mutex("m").Acquire(t.Context()); !errors.Is(err, zklock.ErrClosed) {
			t.Fatalf("Acquire: %v, want a closed client", err)
		}
		acquired := p.one(tracing.SpanAcquire)
		shows(t, "acquire", acquired.Attributes(), map[attribute.Key]string{
			tracing.AttrOutcome: tracing.OutcomeError, tracing.AttrErrorType: "closed"})
		if s := acquired.Status(); s.Code != codes.Error || s.Description == "" {
			t.Errorf("status %v, want an error", s)
		}
		p.measured(map[string]float64{"zklock.acquire.duration{error.type=closed,mode=exclusive,outcome=error}": 1})
	})
}
