package middleware_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

func ExampleNew() {
	client, err := zklock.Open("mem://") // zk://host:port,host:port/root in earnest
	if err != nil {
		panic(err)
	}
	defer client.Close()

	pay := func(w http.ResponseWriter, r *http.Request) {
		lock, _ := zklock.FromContext(r.Context()) // r.Context() ends if the lock is lost
		fmt.Fprintln(w, "paid under", lock.Name())
	}
	lock := middleware.New(middleware.ByPathValue(client, "id", "orders/%s"))
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{id}/pay", lock(http.HandlerFunc(pay)))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest("POST", "/orders/42/pay", nil))
	fmt.Print(w.Code, " ", w.Body)
	// Output: 200 paid under orders/42
}

func ExampleOptional() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	// Requests that are sent again with the same key are served one after
	// another; those without a key are not held up.
	once := middleware.New(middleware.Optional(middleware.ByHeader(client, "Idempotency-Key", "once/%s")), middleware.WithTry())
	h := once(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, locked := zklock.FromContext(r.Context())
		fmt.Fprintln(w, "locked:", locked)
	}))
	for _, key := range []string{"", "8e03978e"} {
		r := httptest.NewRequest("POST", "/", nil)
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Print(w.Body)
	}
	// Output:
	// locked: false
	// locked: true
}
