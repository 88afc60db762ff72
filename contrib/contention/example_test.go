package contention_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/contention"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// A program serves its profiles. The profile of held locks has the calls that acquired each lock.
func Example() {
	profile := contention.New()
	client, err := zklock.Open("mem://", zklock.WithHooks(profile.Hooks()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	mux := http.NewServeMux()
	mux.Handle("/debug/zklock/contention", profile.Handler())
	mux.Handle("/debug/zklock/held", profile.HeldHandler())

	lock, err := client.Mutex("carts/7").Acquire(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	page := httptest.NewRecorder()
	mux.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/debug/zklock/held?debug=1", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.Contains(line, "held") || strings.Contains(line, ".Example") {
			fmt.Println(strings.TrimSpace(regexp.MustCompile(`[0-9.]+[mµ]?s`).ReplaceAllString(line, "a moment")))
		}
	}
	fmt.Println(lock.Release(context.Background()))
	// Output:
	// 1 lock held, the oldest for a moment
	// 1 lock held, the oldest for a moment: lock carts/*
	// github.com/zklock/go-zklock/contrib/contention_test.Example
	// <nil>
}

// The profile of waits shows labels and classes as the options say.
func ExampleWithHolderLabels() {
	profile := contention.New(contention.WithHolderLabels(), contention.WithCallerLabels(),
		contention.WithClass(func(name string) string { return strings.TrimRight(name, "0123456789") + "N" }))
	client, err := zklock.Open("mem://", zklock.WithHooks(profile.Hooks()), zklock.WithIdentity(zklock.Identity{Host: "web-3"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	lock, err := client.Mutex("orders/42").Acquire(ctx) // its label is this line
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Mutex("orders/42").Acquire(ctx, zklock.WithWait(time.Second))
	fmt.Println(errors.Is(err, zklock.ErrNotAcquired), lock.Release(ctx))

	page := httptest.NewRecorder()
	profile.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/debug/zklock/contention?debug=1", nil))
	fmt.Println(regexp.MustCompile(`in 1 wait: lock orders/N, held by web example_test.go:\d+`).MatchString(page.Body.String()))
	// Output:
	// true <nil>
	// true
}

// The profiles leave out what is meant to be held for long, unless it is asked for.
func ExampleWithCandidacies() {
	for _, profile := range []*contention.Profile{contention.New(), contention.New(contention.WithCandidacies())} {
		client, err := zklock.Open("mem://", zklock.WithHooks(profile.Hooks()))
		if err != nil {
			fmt.Println(err)
			return
		}
		lock, err := client.Mutex("importer").Acquire(context.Background(), zklock.WithCandidacy())
		if err != nil {
			fmt.Println(err)
			return
		}
		page := httptest.NewRecorder()
		profile.HeldHandler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/debug/zklock/held?debug=1", nil))
		held, _, _ := strings.Cut(page.Body.String(), ",")
		fmt.Println(held)
		_ = lock.Release(context.Background())
		_ = client.Close()
	}
	// Output:
	// 0 locks held
	// 1 lock held
}
