package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

// In memory, sessions expire sooner than by default, because a reader of the output waits.
const (
	timeout = 3 * time.Second
	tick    = 500 * time.Millisecond
)

// startGoroutine starts a worker in this process. To pause it means to freeze the sessions
// of the ensemble, which only the first worker has at that moment.
func (s *starter) startGoroutine(ctx context.Context) (*worker, error) {
	client, err := zklock.OpenConfig(zklock.Config{Connector: s.ensemble.Connector(), SessionTimeout: timeout, TickTime: tick})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	in, orders := io.Pipe()
	lines, out := io.Pipe()
	stop := context.AfterFunc(ctx, func() { _ = errors.Join(in.Close(), lines.Close()) })
	var running sync.WaitGroup
	running.Go(func() {
		defer out.Close()
		defer client.Close()
		runJob(ctx, client, s.path, s.unfenced, in, out)
	})
	pause := func() (func() error, error) {
		var thaws []func()
		for _, id := range s.ensemble.Sessions() {
			thaws = append(thaws, s.ensemble.Freeze(id))
		}
		return func() error {
			for _, thaw := range thaws {
				thaw()
			}
			return nil
		}, nil
	}
	end := func() { cancel(); running.Wait(); stop() }
	return &worker{in: orders, lines: bufio.NewScanner(lines), pause: pause, end: end}, nil
}
