package main

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// stand stands for election under a name until ctx ends; with "", in none. The leader would send
// reminders. If an error ends the candidacy for good, stand cancels ctx. The caller calls end, which
// also does, and which returns that error when the candidacy has ended.
func stand(ctx context.Context, cancel context.CancelCauseFunc, client *zklock.Client, name string) (end func() error) {
	if name == "" {
		return func() error { return nil }
	}
	stood := make(chan error, 1)
	go func() {
		err := election.New(client, name).Run(ctx, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			return nil
		})
		if errors.Is(err, ctx.Err()) {
			err = nil
		}
		cancel(err)
		stood <- err
	}()
	return func() error { cancel(nil); return <-stood }
}
