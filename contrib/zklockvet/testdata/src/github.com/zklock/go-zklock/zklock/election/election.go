// Package election has the names of the real one that the tests call.
package election

import (
	"context"

	"github.com/zklock/go-zklock/zklock"
)

type Option interface{ apply() }

type Election struct{}

func New(c *zklock.Client, name string, opts ...Option) *Election { return nil }

func (*Election) Campaign(ctx context.Context) (*Term, error) { return nil, nil }

func (*Election) Run(ctx context.Context, lead func(ctx context.Context, t *Term) error) error {
	return nil
}

type Term struct{ *zklock.Lock }

func (*Term) Resign(ctx context.Context) error { return nil }
