package main

import (
	"context"

	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

// client is a member that uses zklock's recipe.
type client struct{ *zklock.Client }

// waitsKey is the context key that passes the argument waits of acquire to the hook.
type waitsKey struct{}

func queue(ctx context.Context, server string) (member, error) {
	hooks := zklock.Hooks{Wait: func(ctx context.Context, _ zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
		ctx.Value(waitsKey{}).(func())()
		return ctx, nil
	}}
	c, err := zklock.Open("zk://"+server+root+"?pool_max_sessions=1", zklock.WithHooks(hooks))
	if err != nil {
		return nil, err
	}
	return client{c}, c.Ping(ctx)
}

func (c client) acquire(ctx context.Context, waits func()) (func() error, error) {
	l, err := c.Mutex("queue").Acquire(context.WithValue(ctx, waitsKey{}, waits))
	return func() error { return l.Release(context.Background()) }, err
}

func (c client) close() { _ = c.Close() }
