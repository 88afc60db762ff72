package interceptors_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/interceptors"
	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A hundred calls want one lock, and have deadlines, or are cancelled long before their deadline. In each second
// eight tenths of those that three patient callers have get their answer: the handler does not run for calls
// that end meanwhile.
func TestAnswersWhileCallsEnd(t *testing.T) {
	const seconds, work = 4, 5 * time.Millisecond
	for _, after := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprintf("after %v, cancelled %v", after, cancelled), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New(memdriver.WithLatency(time.Millisecond))
					w := newWorldOn(t, e, e.Connector())
					stop := w.IgnoreWaits()
					defer stop()
					lock := interceptors.UnaryServerInterceptor(w.fixed)
					call := func(ctx context.Context) error {
						_, err := lock(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/shop/Pay"}, func(context.Context, any) (any, error) {
							time.Sleep(work)
							return nil, nil
						})
						return err
					}
					begin := func() (context.Context, context.CancelFunc) {
						if cancelled {
							return context.WithTimeout(t.Context(), 30*time.Second)
						}
						return context.WithTimeout(t.Context(), after)
					}
					patient := func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Minute) }
					calm := testworld.Answers(2, 3, testworld.Leaves(time.Minute, patient, call))
					answers := testworld.Answers(seconds, 100, testworld.Leaves(after, begin, call))
					t.Logf("calm %v, then %v", calm, answers)
					if least := slices.Min(calm) * 8 / 10; slices.Min(answers) < least {
						t.Errorf("answers in each second: %v, want %d", answers, least)
					}
				})
			})
		}
	}
}
