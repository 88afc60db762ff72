package servers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

// Options are what the servers must be able to do.
type Options struct {
	// Clocks gives each server a wall clock of its own, for the fault JumpServer.
	Clocks bool

	// Tick is the tickTime of ZooKeeper servers, which then have the limits that its documentation shows; 0: TickTime, with
	// limits for short sessions.
	Tick time.Duration
}

// Backend is a kind of servers. Its fields say which faults make sense for it.
type Backend struct {
	// Name is its name, such as zookeeper.
	Name string

	// Leads reports that one of the servers leads the others.
	Leads bool

	// Clocks reports that the servers can have wall clocks of their own.
	Clocks bool

	run func(ctx context.Context, dir string, n int, o Options) (*Processes, error)
}

// Backends are the kinds of servers that locktest starts.
var Backends = []Backend{
	{Name: "zookeeper", Leads: true, Clocks: true, run: zooKeeper},
	{Name: "etcd", Leads: true, run: etcd},
	{Name: "redis", Clocks: true, run: redis},
}

// Named returns the backend of a name.
func Named(name string) (Backend, error) {
	for _, b := range Backends {
		if b.Name == name {
			return b, nil
		}
	}
	return Backend{}, fmt.Errorf("%q is not a kind of servers: choose zookeeper, etcd or redis", name)
}

// Supports returns why n servers of the backend cannot have a fault, or no error.
func (b Backend) Supports(k fault.Kind, n int) error {
	switch k {
	case fault.KillLeader, fault.StopLeader, fault.StopFollower, fault.CutFollower:
		if !b.Leads {
			return fmt.Errorf("%s: no server of %s leads the others", k, b.Name)
		}
		if n < 3 {
			return fmt.Errorf("%s: it needs three servers", k)
		}
	case fault.JumpServer:
		if !b.Clocks {
			return fmt.Errorf("%s: %s is a program in Go, whose clock cannot be set apart", k, b.Name)
		}
	case fault.SlowDisk:
		if _, err := exec.LookPath("strace"); err != nil {
			return errors.New(string(k) + ": it needs strace")
		}
	}
	return nil
}

// Run starts n servers on loopback, with their data below dir, and waits until each of them serves.
func (b Backend) Run(ctx context.Context, dir string, n int, o Options) (*Processes, error) {
	return b.run(ctx, dir, n, o)
}

// started starts servers and waits until they serve.
func started(ctx context.Context, dir string, o Options, commands []Command) (*Processes, error) {
	for i := range commands {
		if o.Clocks {
			var err error
			if commands[i].Clock, err = fault.NewClock(dir); err != nil {
				return nil, err
			}
		}
	}
	p, err := Run(commands)
	if err != nil {
		return nil, err
	}
	if err := p.Await(ctx); err != nil {
		_ = p.Close() // the first error says more
		return nil, err
	}
	return p, nil
}
