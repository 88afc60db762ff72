package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

func ExampleNew() {
	client, err := zklock.Open("mem://") // in production zk://host:port,host:port/root
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

// One booking of a seat at a time. A slash in a value is escaped, so that no request can have the lock
// of another seat.
func ExampleByPathValues() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	book := func(w http.ResponseWriter, r *http.Request) {
		lock, _ := zklock.FromContext(r.Context())
		fmt.Fprintln(w, "booked under", lock.Name())
	}
	lock := middleware.New(middleware.ByPathValues(client, "events/%s/seats/%s", "event", "seat"))
	mux := http.NewServeMux()
	mux.Handle("POST /events/{event}/seats/{seat}/book", lock(http.HandlerFunc(book)))
	for _, path := range []string{"/events/gala/seats/7/book", "/events/gala/seats/7%2F..%2F8/book"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("POST", path, nil))
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 booked under events/gala/seats/7
	// 200 booked under events/gala/seats/7%2F..%2F8
}

func ExampleOptional() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	// Requests with the same key, such as repeated ones, are served one after
	// another. Requests without a key do not wait.
	once := middleware.New(middleware.Optional(middleware.ByHeader(client, "Idempotency-Key", "once/%s")), middleware.WithWait(0))
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

// answer sends a request and prints the response.
func answer(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	fmt.Println(w.Code, strings.TrimSpace(w.Body.String()))
	return w
}

// Requests that only read are served together.
func ExampleReadersAndWriters() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	lock := middleware.New(middleware.ReadersAndWriters(client, func(r *http.Request) string { return "prices" + r.URL.Path }),
		middleware.WithWait(5*time.Second), middleware.WithLabel(func(r *http.Request) string { return r.Method }))
	h := lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		held, _ := zklock.FromContext(r.Context())
		fmt.Fprintln(w, held.Name(), held.Mode())
	}))
	answer(h, "GET", "/shoes")
	answer(h, "PUT", "/shoes")
	// Output:
	// 200 prices/shoes shared
	// 200 prices/shoes exclusive
}

// A request that finds the lock taken gets a response at once, which says when to
// try again.
func ExampleWithWait() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	lock := middleware.New(middleware.ByQuery(client, "report", "reports/%s"),
		middleware.WithWait(0), middleware.WithWriteTimeout(10*time.Second), middleware.WithStatus(http.StatusConflict), middleware.WithLostStatus(http.StatusUnprocessableEntity), middleware.WithRetryAfter(time.Minute), middleware.WithTokenHeader("X-Lock-Token"))
	h := lock(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "done") }))
	fmt.Println("token:", answer(h, "POST", "/?report=2026").Header().Get("X-Lock-Token") != "")

	other, err := client.Mutex("reports/2026").Acquire(context.Background())
	if err != nil {
		panic(err)
	}
	defer other.Release(context.Background())
	fmt.Println("come back later:", answer(h, "POST", "/?report=2026").Header().Get("Retry-After") != "")
	answer(h, "POST", "/") // which report?
	// Output:
	// 200 done
	// token: true
	// 409 {"type":"about:blank","title":"Conflict","status":409,"detail":"The lock is in use. Try again later.","reason":"LOCK_CONTENDED"}
	// come back later: true
	// 400 {"type":"about:blank","title":"Bad Request","status":400,"detail":"The value that names the lock is missing from the request, or is not allowed.","reason":"LOCK_NAME"}
}

// An application that writes its own error responses and logs the errors.
func ExampleWithErrorHandler() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	byHeader := func(r *http.Request) zklock.Acquirer {
		if account := r.Header.Get("Account"); account != "" {
			return client.Mutex("accounts/" + account)
		}
		return middleware.Missing()
	}
	lock := middleware.New(byHeader,
		middleware.WithErrorHandler(func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "which account?", http.StatusTeapot)
		}),
		middleware.WithObserver(func(r *http.Request, err error) { fmt.Println(r.URL.Path, "failed:", err != nil) }),
		middleware.WithLogger(slog.New(slog.DiscardHandler)),
		middleware.WithMaxHold(time.Minute), // the context of longer work ends
		middleware.WithBufferBody(1<<20),    // a client that disconnects stops waiting
		middleware.WithFailOpen(),           // in an outage of the ensemble: serve without a lock
		middleware.WithAcquire(
			zklock.WithAsyncRelease(), // a request does not wait until its release is confirmed
			zklock.WithMaxWaiters(20), // refuse more at once
			zklock.WithoutHandover(),  // a token with a Zxid of its own
			zklock.Reenter(),          // an outer handler may hold the lock already
		),
	)
	answer(lock(http.NotFoundHandler()), "POST", "/pay")
	// Output:
	// /pay failed: true
	// 418 which account?
}

// A service does not wait for a lock that its caller holds until it gets the response.
func ExampleWithCallerLocks() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	trust := func(r *http.Request) bool { return r.TLS == nil } // in production: by the client certificate
	none := func(*http.Request) zklock.Acquirer { return nil }
	storage := httptest.NewServer(middleware.New(none, middleware.WithCallerLocks(trust))(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := client.Mutex("orders/42").Acquire(r.Context()) // would wait for its own caller
			fmt.Println("storage:", errors.Is(err, zklock.ErrDeadlock))
		})))
	defer storage.Close()
	caller := &http.Client{Transport: &middleware.Transport{}} // sends the name and token of the context's lock

	err = zklock.Do(context.Background(), client.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
		req, err := http.NewRequestWithContext(ctx, "PUT", storage.URL, nil)
		if err != nil {
			return err
		}
		resp, err := caller.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	caller.CloseIdleConnections()
	fmt.Println(err)
	// Output:
	// storage: true
	// <nil>
}

// A service that refuses requests sent on behalf of a lock that has a newer holder.
func ExampleWithSequencerCheck() {
	client, err := zklock.Open("mem://")
	if err != nil {
		panic(err)
	}
	defer client.Close()

	var guard fence.Guard
	trust := func(r *http.Request) (origin string, ok bool) { return "shop", r.TLS == nil } // in production: by the client certificate
	none := func(*http.Request) zklock.Acquirer { return nil }
	storage := httptest.NewServer(middleware.New(none, middleware.WithSequencerCheck(&guard, trust))(
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "stored") })))
	defer storage.Close()
	caller := &http.Client{Transport: &middleware.Transport{}} // sends the name and token of the context's lock

	err = zklock.Do(context.Background(), client.Mutex("orders/42"), func(ctx context.Context, _ *zklock.Lock) error {
		req, err := http.NewRequestWithContext(ctx, "PUT", storage.URL, nil)
		if err != nil {
			return err
		}
		resp, err := caller.Do(req)
		if err != nil {
			return err
		}
		fmt.Println(resp.StatusCode)
		return resp.Body.Close()
	})
	caller.CloseIdleConnections()
	fmt.Println(err)
	// Output:
	// 200
	// <nil>
}
