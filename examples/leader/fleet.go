package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// nameEnv makes this program a replica with that name. urlEnv is the ensemble's URL, which may
// contain a password: other users of the machine can read arguments.
const (
	nameEnv = "LEADER_REPLICA"
	urlEnv  = "LEADER_URL"
)

// fleet starts replicas: as processes if the ensemble is a real one, or else as clients in this
// process.
type fleet struct {
	url      string
	ensemble *memdriver.Ensemble // nil for a real one
}

func newFleet(url string) *fleet {
	f := &fleet{url: url}
	if strings.HasPrefix(url, "mem://") {
		f.ensemble = memdriver.New()
	}
	return f
}

func (f *fleet) close() {
	if f.ensemble != nil {
		_ = f.ensemble.Close()
	}
}

// open opens a client with one session.
func (f *fleet) open() (*zklock.Client, error) {
	cfg, err := zklock.ParseURL(f.url)
	if err != nil {
		return nil, err
	}
	if cfg.PoolMaxSessions = 1; f.ensemble != nil {
		cfg.Connector = f.ensemble.Connector()
	}
	return zklock.OpenConfig(cfg)
}

// start starts a replica, and returns when it has a session.
func (f *fleet) start(ctx context.Context, name string) (kill func() error, end func(), err error) {
	if f.ensemble == nil {
		return f.startProcess(name)
	}
	client, err := f.open()
	if err != nil {
		return nil, nil, err
	}
	others := f.ensemble.Sessions()
	if err := client.Ping(ctx); err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	own := slices.DeleteFunc(f.ensemble.Sessions(), func(id int64) bool { return slices.Contains(others, id) })
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = candidate(ctx, client, name) })
	thaw := func() {}
	kill = func() error {
		thaw = f.ensemble.Freeze(own[0])
		return nil
	}
	return kill, func() {
		thaw()
		cancel()
		running.Wait()
		_ = client.Close()
	}, nil
}

// startProcess starts a replica as a process.
func (f *fleet) startProcess(name string) (kill func() error, end func(), err error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), nameEnv+"="+name, urlEnv+"="+f.url)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe() // it ends with this process
	if err != nil {
		return nil, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		end()
		return nil, nil, errors.New(name + " has ended before it was ready")
	}
	return cmd.Process.Kill, end, nil
}

// replicaProcess is the whole life of a replica that is a process. It ends with its parent.
func replicaProcess(ctx context.Context, name string) error {
	client, err := zklock.Open(os.Getenv(urlEnv))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return err
	}
	if _, err := os.Stdout.WriteString("ready\n"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if err := candidate(ctx, client, name); ctx.Err() == nil {
		return err
	}
	return nil
}
