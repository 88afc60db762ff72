package connectlock_test

import (
	"context"
	"testing"

	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/contrib/connectlock"
	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/zklock"
)

// answer returns what a call got.
func answer(err error) testworld.Answer {
	switch {
	case err == nil:
		return testworld.Served
	case connect.CodeOf(err) == connect.CodeAborted:
		return testworld.Contended
	case connect.CodeOf(err) == connect.CodeUnavailable:
		return testworld.Unavailable
	}
	return testworld.Refused
}

// Calls that do not wait for their lock are contended only if there is another contender. In an outage
// they are refused soon, as unavailable.
func TestTries(t *testing.T) {
	t.Run("unary", func(t *testing.T) {
		testworld.CheckTries(t, func(t *testing.T, pick func() zklock.Acquirer, work func()) func() testworld.Answer {
			i := connectlock.HandlerInterceptor(func(context.Context, connectlock.Call) zklock.Acquirer { return pick() }, connectlock.WithWait(0))
			return func() testworld.Answer {
				return answer(within(t.Context(), i, func(context.Context) error { work(); return nil }))
			}
		})
	})
	for what, opts := range starts {
		t.Run("stream, "+what, func(t *testing.T) {
			testworld.CheckTries(t, func(t *testing.T, pick func() zklock.Acquirer, work func()) func() testworld.Answer {
				opts := append([]connectlock.Option{connectlock.WithWait(0)}, opts...)
				return func() testworld.Answer {
					return answer(handle(t.Context(), func(context.Context, connectlock.Call) zklock.Acquirer { return pick() }, opts,
						func() error { return nil }, func(context.Context, connect.StreamingHandlerConn) error { work(); return nil }))
				}
			})
		})
	}
}
