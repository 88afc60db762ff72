package interceptors_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

func TestUnaryHandlerRunsUnderTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		conn := serve(t, &shop{pay: func(ctx context.Context, o *text) (*text, error) {
			defer w.Watch(ctx)()
			if l, _ := zklock.FromContext(ctx); l.Name() != "orders/42" || !l.Valid() {
				t.Errorf("lock %q, valid %v; want a valid orders/42", l.Name(), l.Valid())
			}
			return &text{Value: o.GetValue()}, nil
		}}, onServer(interceptors.ByField(w.client, "value", "orders/%s"))...)
		r, err := newShop(conn).Pay(t.Context(), &text{Value: "42"})
		if err != nil || r.GetValue() != "42" {
			t.Errorf("reply %v, error %v", r, err)
		}
		if len(w.Locks()) != 1 {
			t.Errorf("%d locks were acquired, want 1", len(w.Locks()))
		}
	})
}

func TestUnaryCallsOfOneLockAreServedOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		inside, most, served := 0, 0, 0
		conn := serve(t, &shop{pay: func(ctx context.Context, _ *text) (*text, error) {
			defer w.Watch(ctx)()
			inside++
			most = max(most, inside)
			time.Sleep(time.Millisecond)
			inside--
			served++
			return &text{}, nil
		}}, onServer(w.fixed)...)
		done := make(chan error)
		for range 20 {
			go func() {
				_, err := newShop(conn).Pay(t.Context(), &text{})
				done <- err
			}()
		}
		for range 20 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if most != 1 || served != 20 {
			t.Errorf("%d handlers at once, %d calls served; want 1 and 20", most, served)
		}
	})
}

func TestUnaryContended(t *testing.T) {
	w := newWorld(t)
	defer w.Hold("orders/42")()
	conn := serve(t, &shop{}, onServer(w.fixed, interceptors.WithWait(0))...)
	_, err := newShop(conn).Pay(t.Context(), &text{})
	wantStatus(t, err, codes.Aborted, interceptors.ReasonContended)
	if d := retryDelay(err); d < time.Second || d > 1500*time.Millisecond {
		t.Errorf("RetryInfo of %v, want between 1s and 1.5s", d)
	}
	_, err = callUnary(t.Context(), interceptors.UnaryServerInterceptor(w.fixed, interceptors.WithWait(0)), nil)
	if !errors.Is(err, zklock.ErrNotAcquired) {
		t.Errorf("%v does not match ErrNotAcquired", err)
	}
}
