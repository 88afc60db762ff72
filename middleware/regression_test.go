package middleware_test

import (
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// When the ensemble has lost transactions, requests get a 503 with Retry-After: another replica, or this one
// after a restart, may serve them.
func TestLostTransactionsAreUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		restore := memcontrol.Of(e).Backup()
		client, err := zklock.OpenConnector(e.Connector())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for range 20 {
			l, err := client.Mutex("orders/42").Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		restore(time.Minute)
		time.Sleep(2 * time.Minute)
		for range 2 {
			rec := do(middleware.New(middleware.ByQuery(client, "order", "orders/%s"))(never(t)), httptest.NewRequest("GET", "/?order=42", nil))
			if rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
				t.Errorf("%d, header %v: %s; want 503 with Retry-After", rec.Code, rec.Header(), rec.Body)
			}
		}
	})
}
