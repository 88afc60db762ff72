package connectlock_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/zklock/go-zklock/contrib/connectlock"
	"github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// answering is a handler's stream that only sends.
type answering struct {
	connect.StreamingHandlerConn
	sent int
}

func (*answering) Spec() connect.Spec         { return connect.Spec{Procedure: watch} }
func (*answering) RequestHeader() http.Header { return make(http.Header) }
func (s *answering) Send(any) error           { s.sent++; return nil }

// asked is a context that calls a function when it is asked for its deadline.
type asked struct {
	context.Context
	then func()
}

func (a *asked) Deadline() (time.Time, bool) {
	a.then()
	return time.Time{}, false
}

// The lock is lost between the last look at it and the call of the handler, when WithMaxHold asks
// for the deadline of the call. The stream is one whose lock was lost, and not one without a lock.
func TestLostAsTheHandlerOfAStreamBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		var got *zklock.Lock
		c, err := zklock.OpenConnector(e.Connector(), zklock.WithLogger(nil), zklock.WithHooks(zklock.Hooks{
			Acquire: func(ctx context.Context, _ zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
				return ctx, func(r zklock.AcquireResult) { got = r.Lock }
			},
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ctx := &asked{t.Context(), func() {
			if got != nil {
				e.ExpireAll()
				<-got.Done()
			}
		}}
		inner := new(answering)
		err = connectlock.HandlerInterceptor(fixed(c), connectlock.WithMaxHold(time.Hour)).WrapStreamingHandler(
			func(_ context.Context, conn connect.StreamingHandlerConn) error {
				if err := conn.Send(wrapperspb.String("x")); !errors.Is(err, zklock.ErrLost) || inner.sent != 0 {
					t.Errorf("Send: %v after %d messages were sent, want ErrLost after none", err, inner.sent)
				}
				return nil
			})(ctx, inner)
		wantError(t, err, connect.CodeFailedPrecondition, connectlock.ReasonLost)
	})
}

// A process that was stopped after the grant does not call the handler.
func TestLostBeforeTheHandlerBeginsButNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, m := world.Unreported(t)
		pick := func(context.Context, connectlock.Call) zklock.Acquirer { return m }
		err := connectlock.HandlerInterceptor(pick, connectlock.WithAcquire(zklock.Reenter())).WrapStreamingHandler(
			func(context.Context, connect.StreamingHandlerConn) error {
				t.Error("the handler ran")
				return nil
			})(ctx, new(answering))
		wantError(t, err, connect.CodeUnavailable, connectlock.ReasonUnavailable)
	})
}
