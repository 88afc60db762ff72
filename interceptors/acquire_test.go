package interceptors_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
)

// A call under a lock that its context carries already: with Reenter it joins, without it the
// call would wait for itself.
func TestReenterJoinsTheCallersLock(t *testing.T) {
	for _, c := range []struct {
		opts []interceptors.Option
		want codes.Code
	}{{nil, codes.Internal}, {[]interceptors.Option{interceptors.WithAcquire(zklock.Reenter())}, codes.OK}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			pick := func(context.Context, interceptors.Call) zklock.Acquirer { return w.client.Mutex("orders/42") }
			inner := interceptors.UnaryServerInterceptor(pick, append(c.opts, interceptors.WithLogger(slog.New(slog.DiscardHandler)))...)
			held := 0
			_, err := callUnary(t.Context(), interceptors.UnaryServerInterceptor(pick), func(ctx context.Context, _ any) (any, error) {
				return callUnary(ctx, inner, func(ctx context.Context, _ any) (any, error) {
					held = len(zklock.HeldIn(ctx))
					return nil, nil
				})
			})
			if status.Code(err) != c.want || c.want == codes.OK && held != 2 {
				t.Errorf("%v with %d locks, want %v", err, held, c.want)
			}
		})
	}
}

// With WithMaxWaiters a call is refused while that many wait already.
func TestMaxWaitersRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		pick := func(context.Context, interceptors.Call) zklock.Acquirer { return w.client.Mutex("orders/42") }
		i := interceptors.UnaryServerInterceptor(pick, interceptors.WithAcquire(zklock.WithMaxWaiters(2)), interceptors.WithCode(codes.ResourceExhausted))
		l, err := w.client.Mutex("orders/42").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan codes.Code, 5)
		for range 5 {
			go func() {
				_, err := callUnary(t.Context(), i, func(context.Context, any) (any, error) { return nil, nil })
				ended <- status.Code(err)
			}()
			synctest.Wait()
		}
		if len(ended) != 3 {
			t.Errorf("%d calls ended while the lock was held, want 3", len(ended))
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		got := map[codes.Code]int{}
		for range 5 {
			got[<-ended]++
		}
		if got[codes.ResourceExhausted] != 3 || got[codes.OK] != 2 {
			t.Errorf("codes %v, want 3 calls to be refused", got)
		}
	})
}

// With WithoutHandover each call has a token with a Zxid of its own.
func TestWithoutHandoverGivesEachCallANode(t *testing.T) {
	for _, c := range []struct {
		opts []interceptors.Option
		want int
	}{{nil, 1}, {[]interceptors.Option{interceptors.WithAcquire(zklock.WithoutHandover())}, 3}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			pick := func(context.Context, interceptors.Call) zklock.Acquirer { return w.client.Mutex("orders/42") }
			i := interceptors.UnaryServerInterceptor(pick, c.opts...)
			zxids := make(map[int64]bool)
			first, done := make(chan struct{}), make(chan struct{}, 3)
			for range 3 {
				go func() {
					_, err := callUnary(t.Context(), i, func(ctx context.Context, _ any) (any, error) {
						l, _ := zklock.FromContext(ctx)
						if zxids[l.Token().Zxid] = true; len(zxids) == 1 {
							<-first
						}
						return nil, nil
					})
					if err != nil {
						t.Error(err)
					}
					done <- struct{}{}
				}()
				synctest.Wait()
			}
			close(first)
			for range 3 {
				<-done
			}
			if len(zxids) != c.want {
				t.Errorf("three calls have had %d Zxids, want %d", len(zxids), c.want)
			}
		})
	}
}
