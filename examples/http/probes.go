package main

import (
	"net/http"

	"github.com/zklock/go-zklock/zklock"
)

// withProbes adds handlers for probes, which cost the ensemble nothing: /ready answers whether the replica
// can lock, and /live whether it ever will. Unlike an outage, an ensemble that has lost transactions makes a
// client useless for good, and a restart helps.
func withProbes(mux *http.ServeMux, client *zklock.Client) http.Handler {
	mux.Handle("GET /ready", probe(client.Healthy))
	mux.Handle("GET /live", probe(func() error {
		if err := client.Healthy(); zklock.Reason(err) == "token_regression" {
			return err
		}
		return nil
	}))
	return mux
}

func probe(check func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := check(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}
