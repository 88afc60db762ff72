package middleware_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	testworld "github.com/zklock/go-zklock/internal/testkit/world"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A hundred clients want one lock, and hang up when they have waited for a while. In each second eight tenths of
// those that three patient clients have get their answer: the handler does not run for clients that leave
// meanwhile. A client may have a deadline, as of a middleware around the lock's, and hang up long before.
func TestAnswersWhileClientsHangUp(t *testing.T) {
	const seconds, work = 4, 5 * time.Millisecond
	for _, after := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		for _, deadline := range []time.Duration{0, 30 * time.Second} {
			t.Run(fmt.Sprintf("after %v, deadline %v", after, deadline), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					e := memdriver.New(memdriver.WithLatency(time.Millisecond))
					w := newWorldOn(t, e, e.Connector())
					stop := w.IgnoreWaits()
					defer stop()
					h := middleware.New(w.fixed)(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
						time.Sleep(work)
						rw.WriteHeader(http.StatusNoContent)
					}))
					serve := func(ctx context.Context) error {
						if rec := do(h, httptest.NewRequestWithContext(ctx, "GET", "/", nil)); rec.Code != http.StatusNoContent {
							return fmt.Errorf("status %d", rec.Code)
						}
						return nil
					}
					begin := func() (context.Context, context.CancelFunc) {
						if deadline > 0 {
							return context.WithTimeout(t.Context(), deadline)
						}
						return context.WithCancel(t.Context())
					}
					calm := testworld.Answers(2, 3, testworld.Leaves(time.Minute, begin, serve))
					answers := testworld.Answers(seconds, 100, testworld.Leaves(after, begin, serve))
					t.Logf("calm %v, then %v", calm, answers)
					if least := slices.Min(calm) * 8 / 10; slices.Min(answers) < least {
						t.Errorf("answers in each second: %v, want %d", answers, least)
					}
				})
			})
		}
	}
}
