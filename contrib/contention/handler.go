package contention

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/pprof/profile"
)

// Handler serves the profile of waits, for /debug/zklock/contention: all waits since New, or with
// ?seconds=30 the waiting that is done in the next 30 seconds. With ?debug=1 it is text, otherwise
// it is in the format of go tool pprof. The handler answers all requests.
func (p *Profile) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seconds, err := secondsOf(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		began, totals := p.made, p.waits.snapshot()
		if seconds > 0 {
			began = time.Now()
			timer := time.NewTimer(seconds)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-r.Context().Done():
				return
			}
			totals = since(totals, p.waits.snapshot())
		}
		took := time.Since(began)
		serve(w, r, "contention", func() *profile.Profile { return encodeWaits(totals, took) }, func() string { return waitsText(totals, took) })
	})
}

// HeldHandler serves the profile of held locks, for /debug/zklock/held. With ?debug=1 it is text,
// the lock that is held for longest first; otherwise it is in the format of go tool pprof. The
// handler answers all requests.
func (p *Profile) HeldHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ages := p.held.snapshot(p.class, &p.lines)
		serve(w, r, "held", func() *profile.Profile { return encodeHeld(ages) }, func() string { return heldText(ages) })
	})
}

// secondsOf returns the parameter seconds; 0 if there is none.
func secondsOf(r *http.Request) (time.Duration, error) {
	text := r.FormValue("seconds")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	d := time.Duration(n * float64(time.Second))
	if err != nil || n <= 0 || d <= 0 {
		return 0, fmt.Errorf("seconds=%q: want a positive number", text)
	}
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 && d >= s.WriteTimeout {
		return 0, fmt.Errorf("seconds=%q: the server's WriteTimeout is %v; ask for less", text, s.WriteTimeout)
	}
	return d, nil
}

// serve writes a profile in the form that the request asks for.
func serve(w http.ResponseWriter, r *http.Request, name string, encoded func() *profile.Profile, text func() string) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if debug := r.FormValue("debug"); debug != "" && debug != "0" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprint(w, text())
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	_ = encoded().Write(w) // fails only if the client has gone
}
