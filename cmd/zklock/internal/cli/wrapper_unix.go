//go:build unix

package cli

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

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
	path    string        // of the command's file
	command []string      // its name first
	names   []string      // of the locks
	slot    string        // that the command runs for; "" if for none
	timeout time.Duration // of the session that is asked for
	helpers *run.Helpers  // nil for elect, whose wait is long
	where   string        // the locality of the locks
	outer   []zklock.CallerLock

	pending bool // the ensemble has not confirmed a release in time
	quiet   bool // close prints nothing: the exit code says more
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
	return &wrapper{app: a, flags: f, client: client, signals: signals, path: path, command: command, names: names, timeout: cfg.SessionTimeout,
		where: locality(cfg), outer: a.outerLocks(cfg)}, nil
}

// startHelpers starts the processes that guard the command, while the lock is acquired. The caller calls end at the end. A
// short run collects no garbage: the buffers of one connection would make it do so, for 2 ms.
func (w *wrapper) startHelpers() (end func()) {
	if percent := debug.SetGCPercent(-1); percent >= 0 {
		time.AfterFunc(helpersTime, func() { debug.SetGCPercent(percent) })
	}
	w.helpers = run.StartHelpers(runtime.GOOS == "linux") // elsewhere no session has a file
	return w.helpers.End
}

// releaseTime bounds the wait for the confirmation of a release, and that for the end of the session. The exit code of
// the command matters more: a supervisor that waits for it kills this process at last.
const releaseTime = 2 * time.Second

// release gives the locks back, after the last process of the command has ended.
func (w *wrapper) release(lock *zklock.Lock) {
	w.messages.mute()
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	if err := lock.Release(ctx); err != nil && !errors.Is(err, zklock.ErrLost) {
		w.pending = true
	}
}

// close closes the client. If the servers do not answer, it leaves the session to another process, and to its
// expiry: see run.Bequeath.
func (w *wrapper) close() {
	w.messages.mute()
	if !w.pending {
		closed := make(chan error, 1)
		go func() { closed <- w.client.Close() }()
		late := time.NewTimer(releaseTime)
		defer late.Stop()
		select {
		case err := <-closed:
			if err != nil {
				w.messages.printf("%v", err)
			}
			return
		case <-late.C:
		}
	}
	sessions, _ := sessiondir.Held()
	run.Bequeath(sessions) // they are open until this process ends
	if !w.quiet {
		w.messages.printf("the servers do not answer, so the end of the session is not confirmed: its names are free about %v after they answer again, at the latest", w.timeout)
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
			Env: run.Environment(run.Variables{Names: strings.Join(w.names, "\n"), Paths: strings.Join(paths, "\n"), Token: lock.Token().String(), Slot: w.slot, Held: w.held(lock)})},
		Lease: lock, Timing: timing, Signals: w.signals, Log: w.messages.printf, LogNow: w.messages.printNow, Sessions: sessions, Helpers: w.helpers, Revoked: lock.Revoked(),
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
