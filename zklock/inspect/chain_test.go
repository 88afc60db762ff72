package inspect_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/inspect"
)

// traceKey is the key of a context's trace.
type traceKey struct{}

// checkout makes three requests of one process, each with a trace of its own: each holds a cart, and waits for
// the stock, of which another process holds the lock and does nothing. One of them only is in the queue of the
// stock. A fourth process waits for one of the carts.
func (w *world) checkout() {
	w.Helper()
	open := func(host string) *zklock.Client {
		c, err := zklock.OpenConnector(w.ensemble.Connector(), zklock.WithLogger(nil), zklock.WithIdentity(zklock.Identity{Host: host, PID: 1}),
			zklock.WithHooks(zklock.Hooks{Inject: func(ctx context.Context) string {
				trace, _ := ctx.Value(traceKey{}).(string)
				return trace
			}}))
		if err != nil {
			w.Fatal(err)
		}
		w.Cleanup(func() { _ = c.Close() })
		return c
	}
	shop, stuck := open("shop-1"), open("stuck-9")
	w.hold(stuck.Mutex("stock"), "recount")
	for i := range 3 {
		ctx := context.WithValue(w.Context(), traceKey{}, fmt.Sprintf("00-%032d-%016d-01", i+1, i+1))
		go func() {
			_ = zklock.Do(ctx, shop.Mutex(fmt.Sprintf("cart/%d", i)), func(ctx context.Context, _ *zklock.Lock) error {
				return zklock.Do(ctx, shop.Mutex("stock"), func(context.Context, *zklock.Lock) error { return nil })
			})
		}()
	}
	time.Sleep(5 * time.Second)
	w.wait(w.jobs.Mutex("cart/2"), "refund")
	time.Sleep(5 * time.Second)
}

// Wherever the reader begins, the page leads to the process that does nothing, and not to a victim of it.
func TestPageLeadsToTheCulprit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.checkout()
		h := inspect.Handler(w.web)
		const culprit = `stuck-9/1 "recount" holds stock, asked 10s ago`
		for _, query := range []string{"name=cart/0", "name=cart/1", "name=cart/2", "name=stock", "host=shop-1", "host=shop-1&pid=1", "host=jobs-1"} {
			text := get(t, h, "/?format=text&"+query).Body.String()
			if strings.Count(text, culprit) != 1 || strings.Contains(text, "perhaps") {
				t.Errorf("%s does not lead to the culprit:\n%s", query, text)
			}
		}
		// The longest wait is for the stock. Of the cart alone the head line leads on as well.
		if text := get(t, h, "/?format=text").Body.String(); !strings.Contains(text, `longest wait 10s: stock, held by stuck-9/1 "recount"`) {
			t.Errorf("the list:\n%s", text)
		}
		if text := get(t, h, "/?name=cart/2").Body.String(); !strings.Contains(text, `>it waits for <a href="?name=stock">stock</a>`) {
			t.Errorf("the page of a cart:\n%s", text)
		}
	})
}

// The page of a name that nothing waits for has no tree: its holder is in the way of none.
func TestNothingIsHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hold(w.web.Mutex("x"), "works")
		text := get(t, inspect.Handler(w.web), "/?name=x").Body.String()
		if !strings.Contains(text, "works") || strings.Contains(text, `id="mover"`) {
			t.Errorf("a name that nothing waits for:\n%s", text)
		}
	})
}
