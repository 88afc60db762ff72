package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"

	"github.com/zklock/go-zklock/tracing"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// The tests in this file call the hooks directly, because with a Client the tested cases
// occur too rarely.

func TestOutcomesAndErrorTypes(t *testing.T) {
	ctxEnded := func(waitedFor, err error) error {
		return &zklock.Error{Op: "acquire", Name: "m", Err: fmt.Errorf("%w: %w", waitedFor, err)}
	}
	for _, c := range []struct {
		err                error
		outcome, errorType string
	}{
		{nil, tracing.OutcomeAcquired, ""},
		{zklock.ErrNotAcquired, tracing.OutcomeContended, ""},
		{zklock.ErrTooManyWaiters, tracing.OutcomeContended, ""},
		{ctxEnded(zklock.ErrNotAcquired, context.DeadlineExceeded), tracing.OutcomeTimeout, ""},
		{ctxEnded(zklock.ErrNotAcquired, context.Canceled), tracing.OutcomeCanceled, ""},
		{ctxEnded(zklock.ErrNotAcquired, fmt.Errorf("%w: %w", context.Canceled, zklock.ErrLost)), tracing.OutcomeCanceled, ""},
		{ctxEnded(zklock.ErrUnavailable, context.Canceled), tracing.OutcomeCanceled, ""},
		{ctxEnded(zklock.ErrUnavailable, context.DeadlineExceeded), tracing.OutcomeError, "unavailable"},
		{context.Canceled, tracing.OutcomeError, "canceled"},
		{&zklock.LostError{Name: "m", Cause: zklock.ErrClosed}, tracing.OutcomeLost, "lost"},
		{zklock.ErrClosed, tracing.OutcomeError, "closed"},
		{zklock.ErrUnavailable, tracing.OutcomeError, "unavailable"},
		{fmt.Errorf("%w: %w", zklock.ErrUnavailable, driver.ErrConnLoss), tracing.OutcomeError, "unavailable"},
		{zklock.ErrInvalidName, tracing.OutcomeError, "invalid_name"},
		{zklock.ErrConflict, tracing.OutcomeError, "conflict"},
		{zklock.ErrDeadlock, tracing.OutcomeError, "deadlock"},
		{zklock.ErrMisuse, tracing.OutcomeError, "misuse"},
		{zklock.ErrUnknownOutcome, tracing.OutcomeError, "unknown_outcome"},
		{fmt.Errorf("%w: %w", zklock.ErrNoAuth, driver.ErrNoAuth), tracing.OutcomeError, "no_auth"},
		{driver.ErrQuotaExceeded, tracing.OutcomeError, "quota_exceeded"},
		{errors.New("unheard of"), tracing.OutcomeError, "_OTHER"},
	} {
		t.Run(fmt.Sprint(c.err), func(t *testing.T) {
			p := start(t, memdriver.New())
			_, end := p.hooks.Acquire(t.Context(), zklock.AcquireEvent{Name: "m", Mode: zklock.Exclusive})
			end(zklock.AcquireResult{Err: c.err})
			s := p.one(tracing.SpanAcquire)
			shows(t, "acquire", s.Attributes(), map[attribute.Key]string{
				tracing.AttrOutcome: c.outcome, tracing.AttrErrorType: c.errorType})
			if isError := s.Status().Code == codes.Error; isError != (c.errorType != "") {
				t.Errorf("the span's status is %v, want an error: %v", s.Status(), c.errorType != "")
			}
		})
	}
}

// locked acquires a lock with a Client that does not have the tested hooks.
func locked(t *testing.T) *zklock.Lock {
	t.Helper()
	e := memdriver.New()
	c, err := zklock.OpenConnector(e.Connector())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), e.Close()); err != nil {
			t.Error(err)
		}
	})
	return must(t, t.Context(), c.Mutex("m"))
}

// A loss can come while Acquire is about to return.
func TestLossBeforeTheAcquisitionHasEnded(t *testing.T) {
	for _, returned := range []bool{true, false} {
		t.Run(fmt.Sprintf("returned=%t", returned), func(t *testing.T) {
			p := start(t, memdriver.New())
			lock, other := locked(t), locked(t)
			ctx, end := p.hooks.Acquire(t.Context(), zklock.AcquireEvent{Name: "m", Mode: zklock.Exclusive})
			p.hooks.Lost(ctx, zklock.LostEvent{Lock: lock, Err: &zklock.LostError{Name: "m", Cause: errors.New("gone")}})
			if returned {
				end(zklock.AcquireResult{Lock: lock})
				p.measured(map[string]float64{
					"zklock.held{mode=exclusive}":                              0,
					"zklock.lost{error.type=lost,mode=exclusive}":              1,
					"zklock.hold.duration{mode=exclusive,release.reason=lost}": 1,
				})
				return
			}
			end(zklock.AcquireResult{Lock: other}) // Acquire did not return the lost lock
			p.measured(map[string]float64{
				"zklock.held{mode=exclusive}":                              1,
				"zklock.lost{error.type=lost,mode=exclusive}":              0,
				"zklock.hold.duration{mode=exclusive,release.reason=lost}": none,
			})
		})
	}
}

// A loss can be reported between the begin and the end of a release. A release can find
// a loss that was not reported.
func TestHoldEndsOnce(t *testing.T) {
	gone := &zklock.LostError{Name: "m", Cause: errors.New("gone")}
	for _, c := range []struct {
		name   string
		lost   bool  // the Lost hook is called
		err    error // the error of the release
		reason string
		losses float64
	}{
		{"release", false, nil, tracing.ReasonReleased, 0},
		{"loss", true, gone, tracing.ReasonLost, 1},
		{"loss and a clean release", true, nil, tracing.ReasonLost, 1},
		{"loss found out", false, gone, tracing.ReasonLost, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t, memdriver.New())
			lock := locked(t)
			request, span := p.request("pay")
			ctx, end := p.hooks.Acquire(request, zklock.AcquireEvent{Name: "m", Mode: zklock.Exclusive})
			end(zklock.AcquireResult{Lock: lock})
			_, released := p.hooks.Release(t.Context(), zklock.ReleaseEvent{Lock: lock, Held: time.Second})
			if c.lost {
				p.hooks.Lost(ctx, zklock.LostEvent{Lock: lock, Err: gone})
			}
			release(t, lock)
			released(zklock.ReleaseResult{Err: c.err})
			span.End()
			p.hooks.Lost(ctx, zklock.LostEvent{Lock: lock, Err: gone}) // late, or a second time
			if n := len(p.one("pay").Events()); n != int(c.losses) {
				t.Errorf("the request's span has %d events of losses, want %v", n, c.losses)
			}
			p.measured(map[string]float64{
				"zklock.held{mode=exclusive}":                                          0,
				"zklock.lost{error.type=lost,mode=exclusive}":                          c.losses,
				"zklock.hold.duration{mode=exclusive,release.reason=" + c.reason + "}": 1,
			})
		})
	}
}

// The end of a session is reported more than once, and so is its connection.
func TestSessionEventsAreCountedOnce(t *testing.T) {
	p := start(t, memdriver.New())
	report := func(id int64, state driver.State) {
		p.hooks.Session(zklock.SessionEvent{ID: id, State: state})
	}
	for id := range int64(200) {
		report(id, driver.Connected)
		report(id, driver.Suspended)
		report(id, driver.Suspended)
		report(id, driver.Connected)
		report(id, driver.Connected)
		report(id, driver.Expired)
		report(id, driver.Suspended)
		report(id, driver.Connected)
		report(id, driver.Expired)
		report(-id-1, driver.Closed)
		report(-id-1, driver.Expired)
	}
	p.hooks.Session(zklock.SessionEvent{ID: 1000, State: driver.Suspended, Silent: time.Second})
	p.measured(map[string]float64{"zklock.session.reconnects{}": 200, "zklock.session.silent{}": 1, "zklock.session.lost{}": 200, "zklock.lease.remaining{}": none})
}

// Other processes may have written any text as traceparent into their queue nodes.
func TestTracesThatAreNoneAreNotLinked(t *testing.T) {
	p := start(t, memdriver.New())
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	ctx, end := p.hooks.Acquire(t.Context(), zklock.AcquireEvent{Name: "m", Mode: zklock.Exclusive})
	event := func(trace string) zklock.WaitEvent {
		return zklock.WaitEvent{Name: "m", Mode: zklock.Exclusive, Ahead: zklock.Contender{Trace: trace}}
	}
	ctx, waited := p.hooks.Wait(ctx, event("00-00000000000000000000000000000000-0000000000000000-00"))
	for _, bad := range []string{"", "x", good[:54], good + "0", "ff" + good[2:]} {
		p.hooks.Ahead(ctx, event(bad))
	}
	p.hooks.Ahead(ctx, event(good))
	p.hooks.Ahead(ctx, event(good))
	waited(zklock.WaitResult{})
	end(zklock.AcquireResult{Err: zklock.ErrClosed})
	s := p.one(tracing.SpanWait)
	if links := s.Links(); len(links) != 1 || id(links[0].SpanContext) != good[3:35]+"/"+good[36:52] {
		t.Errorf("links %v, want one, to %s", links, good)
	}
	if n := len(s.Events()); n != 7 {
		t.Errorf("the span has %d events, want 7", n)
	}
}

// A lost handle need not be released, so it must not be remembered until it is.
func TestLostHandlesAreForgotten(t *testing.T) {
	p := start(t, memdriver.New())
	forgotten := make(chan struct{})
	func() {
		e := memdriver.New()
		c, err := zklock.OpenConnector(e.Connector(), zklock.WithHooks(p.hooks))
		if err != nil {
			t.Fatal(err)
		}
		lock := must(t, t.Context(), c.Mutex("m"))
		runtime.AddCleanup(lock, func(done chan struct{}) { close(done) }, forgotten)
		if err := errors.Join(c.Close(), e.Close()); err != nil {
			t.Fatal(err)
		}
		<-lock.Done()
	}()
	limit := time.NewTimer(10 * time.Second)
	defer limit.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		runtime.GC()
		select {
		case <-forgotten:
			runtime.KeepAlive(p)
			return
		case <-again.C:
		case <-limit.C:
			t.Fatal("the handle is still reachable")
		}
	}
}
