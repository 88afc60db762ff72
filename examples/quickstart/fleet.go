package main

import (
	"context"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/memdriver"
)

// fleet starts replicas: as processes if the ensemble is a real one, as goroutines if it
// is in the memory of this process.
type fleet struct {
	url      string              // of the real ensemble; "" if there is one in memory
	ensemble *memdriver.Ensemble // the one in memory; nil if there is a real one
	timeout  time.Duration       // of sessions
	tick     time.Duration       // the longest delay until the ensemble notices that a timeout is over
}

// newFleet makes a fleet for an ensemble. In memory, timeouts are short, because a new user
// has to wait until two of them are over.
func newFleet(url string) (*fleet, error) {
	if strings.HasPrefix(url, "mem://") {
		tick := 500 * time.Millisecond
		return &fleet{ensemble: memdriver.New(memdriver.WithTickTime(tick)), timeout: 3 * time.Second, tick: tick}, nil
	}
	f := &fleet{url: url, timeout: 10 * time.Second, tick: 3 * time.Second} // the defaults of URLs
	for key, d := range map[string]*time.Duration{"session_timeout": &f.timeout, "tick_time": &f.tick} {
		_, rest, ok := strings.Cut(url, key+"=")
		if !ok {
			continue
		}
		value, _, _ := strings.Cut(rest, "&")
		var err error
		if *d, err = time.ParseDuration(value); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *fleet) close() {
	if f.ensemble != nil {
		_ = f.ensemble.Close()
	}
}

// start starts a replica of a shop, and waits until it has its session.
func (f *fleet) start(ctx context.Context, shop string) (*member, error) {
	if f.ensemble != nil {
		return f.startGoroutine(ctx, shop)
	}
	return f.startProcess(ctx, shop)
}
