package middleware_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestAsyncReleaseDoesNotHoldUpTheResponse: with the option a request takes one round trip
// to the ensemble, and without it two.
func TestAsyncReleaseDoesNotHoldUpTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(10 * time.Millisecond))
		defer e.Close()
		client, err := zklock.OpenConnector(e.Connector())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		pick := func(*http.Request) zklock.Acquirer { return client.Mutex("orders/42") }
		take := func(opts ...middleware.Option) time.Duration {
			h := middleware.New(pick, opts...)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			do(h, httptest.NewRequest("GET", "/", nil)) // opens the session
			time.Sleep(time.Second)
			began := time.Now()
			do(h, httptest.NewRequest("GET", "/", nil))
			took := time.Since(began)
			time.Sleep(time.Second)
			return took
		}
		if waits, does := take(), take(middleware.WithAcquire(zklock.WithAsyncRelease())); does > waits*2/3 {
			t.Errorf("a request took %v with WithAsyncRelease, and %v without", does, waits)
		}
		if st := client.Stats(); st.Held != 0 {
			t.Errorf("%d locks are still held", st.Held)
		}
	})
}
