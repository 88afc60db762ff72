package main

import (
	"context"
	"errors"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

// stand stands for election under a name until ctx ends. The leader would send reminders. It returns
// an error that ends the candidacy for good.
func stand(ctx context.Context, client *zklock.Client, name string) error {
	err := election.New(client, name).Run(ctx, func(ctx context.Context, _ *election.Term) error {
		<-ctx.Done()
		return nil
	})
	if errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}
