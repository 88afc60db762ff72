// Package gocronlock has the names of the real one that the tests call.
package gocronlock

import (
	"context"
	"time"

	"github.com/zklock/go-zklock/zklock"
)

type Option interface{ apply() }

func Once(c *zklock.Client, name string, d time.Duration, job func(ctx context.Context) error, opts ...Option) func(ctx context.Context) error {
	return nil
}

type Elector struct{}

func (*Elector) Do(ctx context.Context, f func(ctx context.Context) error) error { return nil }
