package main

import (
	"context"
	"io"
	"slices"
	"sync"

	"github.com/zklock/go-zklock/zklock"
)

// startGoroutine starts a replica in this process. To kill or pause it means to freeze its
// session, which then sends nothing, like the session of a killed or paused process.
func (f *fleet) startGoroutine(ctx context.Context, shop string) (*member, error) {
	client, err := zklock.OpenConfig(zklock.Config{
		Connector: f.ensemble.Connector(), SessionTimeout: f.timeout, TickTime: f.tick, PoolMaxSessions: 1,
	}, quiet)
	if err != nil {
		return nil, err
	}
	others := f.ensemble.Sessions()
	ctx, cancel := context.WithCancel(ctx)
	in, orders := io.Pipe()
	answers, out := io.Pipe()
	var running sync.WaitGroup
	m := &member{orders: orders, answers: make(chan string, 1)}
	running.Go(func() {
		defer out.Close()
		defer client.Close()
		runReplica(ctx, client, shop, in, out)
	})
	running.Go(func() { m.read(answers) })

	var own []int64 // its sessions
	var thaws []func()
	thaw := func() error {
		for _, thaw := range thaws {
			thaw()
		}
		return nil
	}
	m.pause = func() (func() error, error) {
		for _, id := range own {
			thaws = append(thaws, f.ensemble.Freeze(id))
		}
		return thaw, nil
	}
	m.kill = func() error {
		_, err := m.pause()
		return err
	}
	m.end = func() {
		_ = thaw()
		cancel()
		_ = orders.Close()
		m.drain()
		running.Wait()
	}
	if _, err := m.ready(ctx); err != nil {
		return nil, err
	}
	own = slices.DeleteFunc(f.ensemble.Sessions(), func(id int64) bool { return slices.Contains(others, id) })
	return m, nil
}
