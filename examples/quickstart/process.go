package main

import (
	"context"
	"os"
	"os/exec"
	"sync"

	"github.com/zklock/go-zklock/zklock"
)

// replicaEnv makes this program a replica of the shop at the address that it holds;
// urlEnv is the ensemble's URL, which may contain a password: other users of the machine
// can read arguments.
const (
	replicaEnv = "QUICKSTART_REPLICA"
	urlEnv     = "QUICKSTART_URL"
)

func (f *fleet) startProcess(ctx context.Context, shop string) (*member, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), replicaEnv+"="+shop, urlEnv+"="+f.url)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	var reading sync.WaitGroup
	m := &member{orders: in, answers: make(chan string, 1), kill: cmd.Process.Kill}
	reading.Go(func() { m.read(out) })
	m.pause = func() (func() error, error) { return pauseProcess(cmd.Process) }
	m.end = func() {
		_ = cmd.Process.Kill()
		m.drain()
		reading.Wait()
		_ = cmd.Wait()
	}
	return m.ready(ctx)
}

// replicaProcess is the whole life of a replica that is a process.
func replicaProcess(ctx context.Context, url, shop string) error {
	client, err := zklock.Open(url, quiet)
	if err != nil {
		return err
	}
	defer client.Close()
	runReplica(ctx, client, shop, os.Stdin, os.Stdout)
	return nil
}
