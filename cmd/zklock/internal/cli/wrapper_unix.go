//go:build unix

package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/zklock/go-zklock/cmd/zklock/internal/run"
	"github.com/zklock/go-zklock/internal/sessiondir"
	"github.com/zklock/go-zklock/zklock"
)

// wrapper is what run and elect have in common: a command that runs while a lock is held.
type wrapper struct {
	*app
	flags   runFlags
	client  *zklock.Client
	signals *run.Signals
	path    string   // of the command's file
	command []string // its name first
	names   []string // of the locks
	slot    string   // that the command runs for; "" if for none
}

// wrapper finds the command, and opens the client. It makes no request.
func (a *app) wrapper(f runFlags, names, command []string) (*wrapper, error) {
	path, err := run.LookUp(command[0])
	if err != nil {
		return nil, startFailure(err)
	}
	cfg, err := a.wrapping()
	if err != nil {
		return nil, err
	}
	if err := run.CheckGrace(cfg.SessionTimeout, f.grace); err != nil { // the servers never grant a longer one
		return nil, fail(exitConfiguration, err)
	}
	signals := run.CatchSignals()
	host, _ := os.Hostname()
	client, err := a.client(cfg, zklock.WithIdentity(zklock.Identity{Host: host, PID: os.Getpid()}))
	if err != nil {
		return nil, err
	}
	return &wrapper{app: a, flags: f, client: client, signals: signals, path: path, command: command, names: names}, nil
}

// close closes the client.
func (w *wrapper) close() {
	if err := w.client.Close(); err != nil {
		w.messages.printf("%v", err)
	}
}

// run runs the command under a lock, which was acquired with zklock.WithRevocable. When it
// returns, all processes of the command are dead. The error has its exit code.
func (w *wrapper) run(lock *zklock.Lock) (run.Result, error) {
	timing, note, err := run.NewTiming(lock.SessionTimeout(), lock.MinLease(), w.flags.grace)
	if err != nil {
		return run.Result{}, fail(exitConfiguration, err)
	}
	if note != "" {
		w.messages.printf("%s", note)
	}
	paths := make([]string, len(w.names))
	for i, name := range w.names {
		paths[i] = w.client.Mutex(name).Path()
	}
	sessions, err := sessiondir.Held()
	if err != nil {
		return run.Result{}, fail(exitFailure, err)
	}
	defer func() {
		for _, f := range sessions {
			_ = f.Close()
		}
	}()
	defer w.reportRevocation(lock)()
	result, err := run.Run(run.Config{
		Command: run.Command{Path: w.path, Args: w.command,
			Env: run.Environment(run.Variables{Names: strings.Join(w.names, "\n"), Paths: strings.Join(paths, "\n"), Token: lock.Token().String(), Slot: w.slot})},
		Lease: lock, Timing: timing, Signals: w.signals, Log: w.messages.printf, LogNow: w.messages.printNow, Sessions: sessions, Revoked: lock.Revoked(),
	})
	if err != nil {
		return run.Result{}, startFailure(err)
	}
	return result, nil
}

// reportRevocation prints an operator's reason when the operator asks for the lock. After a call of
// stop it prints nothing.
func (w *wrapper) reportRevocation(lock *zklock.Lock) (stop func()) {
	ctx, cancel := lock.Context(context.Background())
	deregister := context.AfterFunc(ctx, func() {
		if why := context.Cause(ctx); errors.Is(why, zklock.ErrRevoked) {
			w.messages.printf("the command gets TERM: %s", strings.TrimPrefix(why.Error(), "zklock: "))
		}
	})
	return func() {
		deregister()
		cancel()
	}
}
