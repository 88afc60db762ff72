package interceptors_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/interceptors"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestAsyncReleaseDoesNotHoldUpTheReply: with the option a call takes one round trip to the
// ensemble, and without it two.
func TestAsyncReleaseDoesNotHoldUpTheReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		defer e.Close()
		client, err := zklock.OpenConnector(e.Connector())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		pick := func(context.Context, interceptors.Call) zklock.Acquirer { return client.Mutex("orders/42") }
		take := func(opts ...interceptors.Option) time.Duration {
			call := func() {
				_, err := callUnary(t.Context(), interceptors.UnaryServerInterceptor(pick, opts...), func(context.Context, any) (any, error) { return nil, nil })
				if err != nil {
					t.Fatal(err)
				}
			}
			call() // opens the session
			time.Sleep(time.Second)
			began := time.Now()
			call()
			took := time.Since(began)
			time.Sleep(time.Second)
			return took
		}
		if waits, does := take(), take(interceptors.WithAcquire(zklock.WithAsyncRelease())); does > waits*2/3 {
			t.Errorf("a call took %v with WithAsyncRelease, and %v without", does, waits)
		}
		if st := client.Stats(); st.Held != 0 {
			t.Errorf("%d locks are still held", st.Held)
		}
	})
}
