package locktest

import (
	"context"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// eat takes two locks in random order, the second while it holds the first, and gives both back. Clients that do
// so run into deadlocks. A client that waits for its second lock for too long gives up as an operator would: it
// kills its process, whose locks are then free after the TTL.
func (c *client) eat(ctx context.Context, p *process) {
	order := c.rng.Perm(len(c.run.config.Names))
	first := c.take(ctx, p, Lock{Name: c.run.config.Names[order[0]]}, 0)
	if first == nil {
		return
	}
	defer c.give(ctx, p, first)
	if !pause(ctx, about(c.rng, c.run.config.Hold)) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, c.run.config.GiveUp)
	defer cancel()
	second := c.take(limited, p, Lock{Name: c.run.config.Names[order[1]]}, first.id)
	switch {
	case second != nil:
		pause(ctx, about(c.rng, c.run.config.Hold))
		c.give(ctx, p, second)
	case limited.Err() != nil && ctx.Err() == nil:
		p.kill(history.GivenUp)
	}
}
