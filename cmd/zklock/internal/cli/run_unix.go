//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	_ "github.com/zklock/go-zklock/cmd/zklock/internal/early" // makes this process a guard or a closer
	"github.com/zklock/go-zklock/cmd/zklock/internal/run"
	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/internal/sessiondir"
	"github.com/zklock/go-zklock/zklock"
)

func init() { subcommands = append(subcommands, (*app).runCommand) }

// subprocess does the work of a process that this program starts for its own use. A guard does not come here: see package
// early.
func subprocess() (code int, ran bool) {
	if run.IsCloser() {
		run.BeCloser(func(files []*os.File) {
			quiet := slog.New(slog.DiscardHandler)
			sessiondir.EndHeld(context.Background(), files, opener(quiet), func() *slog.Logger { return quiet })
		})
	}
	return 0, false
}

// runFlags are the flags of run, and those that elect takes.
type runFlags struct {
	shared    bool
	permits   int
	wait      time.Duration
	limited   bool // wait is set
	try       bool
	candidate bool
	grace     time.Duration
	shell     bool
	label     string
	exitCode  int
	quiet     bool
}

const runHelp = `Run a command under one or several locks. The command is dead before another client can have
the locks: it is never left behind.

The command has its own process group. If standard input is the terminal, that group is in its
foreground. Standard input, output and error pass through. When the command has ended, what is
left of its group gets TERM and, after the grace, KILL. Then the locks are released.

If the ensemble cannot renew the lease in time, because it cannot be reached, the group gets
TERM at the end of the lease less the grace, and KILL just before its end. If the connection
comes back before that, nothing happens.

TERM, INT, HUP, QUIT, USR1 and USR2 go to the command. They are never followed by KILL: a command
that ignores them keeps the lock. While zklock waits for the lock, TERM, INT and HUP end the wait.
"zklock revoke" sends TERM to the command, and nothing more.

If zklock itself is killed with KILL, a guard process kills the group, on Linux. When it is dead, a
closer process ends the session, and the locks are free. Nothing can be promised if zklock is
stopped or frozen, or if an operator deletes the lock's node ("zklock release"): in these cases pass
ZKLOCK_TOKEN to the resource, which can refuse a late write. Not covered are processes that leave the
group (setsid, daemons, jobs of "set -m" and of GNU parallel) and processes of another user that
zklock may not kill (sudo). The program timeout makes a group of its own: use "timeout --foreground",
or put timeout in front of zklock.

The command finds in its environment ZKLOCK_NAME and ZKLOCK_PATH, the names and their znodes, one
a line in the order given, ZKLOCK_TOKEN, the fencing token, and ZKLOCK_SLOT, the slot, if there is one.
On Linux, each "zklock run" that the command starts learns from ZKLOCK_HELD what is held: a wait that would
never end is an error.

--once SLOT is for a job that several hosts start at the same time, such as by cron. A lock alone is
not enough for that: the host that is late finds the lock free, and runs the job again. With --once,
a command that has ended with 0 is recorded together with the slot, and that slot and those before it do
not run again: zklock waits while another host runs the job, and then exits with 79. If that host fails or
dies, this one runs the command. A slot is a text, and slots are compared byte by byte: pass what rises
with time, such as "$(date -u +%F)". --every 24h is the same with a slot that zklock computes. "zklock ls"
shows the last slot of each name.

zklock asks for a session timeout of 30s, unless the URL sets one.

` + exitTable

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	var slots slotFlags
	cmd := &cobra.Command{
		Use:   "run NAME [NAME...] -- COMMAND [ARGUMENT...]",
		Short: "Run a command under a lock",
		Long:  runHelp,
		Example: `  zklock run nightly-report -- ./report --all
  zklock run --every 24h --zone Europe/Berlin -q -E 0 nightly-report -- ./report   # once a day, on one of several hosts
  zklock run --try -q -E 0 sync -- ./sync               # nothing to do if another one runs
  zklock run --shell orders/42 -- 'dump | upload'
  zklock run --permits 3 downloads -- ./download`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeNames(1000),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.notice(cmd)
			names, command, err := f.check(args, cmd.ArgsLenAtDash())
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("permits") && f.permits < 1 {
				return usage("--permits wants a number of 1 or more")
			}
			slot, err := slots.slot(cmd, time.Now())
			switch {
			case err != nil:
				return err
			case slot != "" && (len(names) > 1 || f.shared || f.permits > 0 || f.candidate):
				return usage("--once and --every take one name, and no --shared, --permits or --candidate")
			case slot != "":
				if !cmd.Flags().Changed("exit-code") {
					f.exitCode = exitSlotHasRun
				}
				return a.runOnce(cmd.Context(), f, names[0], slot, command)
			}
			return a.run(cmd.Context(), f, names, command)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.shared, "shared", false, "share the lock with other shared holders")
	flags.IntVar(&f.permits, "permits", 0, "hold one of this many permits of the name")
	flags.DurationVar(&f.wait, "wait", 0, "how long to wait for the lock; 0 is --try (default: without end)")
	flags.BoolVar(&f.try, "try", false, "do not wait for the lock")
	flags.BoolVar(&f.candidate, "candidate", false, "the wait and the command are meant to take long, as those of a service and its standby: lists show a candidate and a leader")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing if the lock was not acquired; with --once or --every, if the slot has run")
	flags.StringVar(&f.label, "label", "", "what others read of the holder (default: the name of the command)")
	flags.IntVarP(&f.exitCode, "exit-code", "E", exitNotAcquired, "the exit code if the lock was not acquired; with --once or --every, if the slot has run")
	slots.addTo(cmd)
	f.addCommonTo(cmd)
	return cmd
}

// addCommonTo adds the flags that mean the same for run and for elect.
func (f *runFlags) addCommonTo(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.grace, "grace", 0, "how long the command has between TERM and KILL (default: a quarter of the session timeout, at most 5s)")
	cmd.Flags().BoolVar(&f.shell, "shell", false, "the command is one argument, which sh -c runs")
}

// notice notes which flags the command line has.
func (f *runFlags) notice(cmd *cobra.Command) {
	f.limited = cmd.Flags().Changed("wait")
	if !cmd.Flags().Changed("grace") {
		f.grace = -1
	}
}

// check returns the names and the command of a command line.
func (f *runFlags) check(args []string, dash int) (names, command []string, err error) {
	if dash < 0 {
		return nil, nil, usage("there is no -- between the name and the command: NAME -- COMMAND")
	}
	names, command = args[:dash], args[dash:]
	switch {
	case len(names) == 0:
		return nil, nil, usage("there is no name of a lock before --")
	case len(command) == 0 || command[0] == "":
		return nil, nil, usage("there is no command after --")
	case f.shell && len(command) != 1:
		return nil, nil, usage("--shell takes one argument: quote the command line")
	case f.permits != 0 && len(names) > 1:
		return nil, nil, usage("--permits takes one name")
	case f.permits != 0 && f.shared:
		return nil, nil, usage("--permits and --shared do not go together")
	case f.limited && f.try:
		return nil, nil, usage("--wait and --try do not go together")
	case f.wait < 0:
		return nil, nil, usage("--wait is less than 0")
	case f.grace < -1:
		return nil, nil, usage("--grace is less than 0")
	case f.exitCode < 0 || f.exitCode > 255:
		return nil, nil, usage("-E wants a number from 0 to 255")
	case f.permits > zklock.MaxPermits:
		return nil, nil, usage(fmt.Sprintf("--permits is at most %d", zklock.MaxPermits))
	}
	for _, name := range names {
		if err := zklock.CheckName(name); err != nil {
			return nil, nil, fail(exitUsage, fmt.Errorf("%q: %w", name, err))
		}
	}
	if f.shell {
		command = []string{"/bin/sh", "-c", command[0]}
	}
	return names, command, nil
}

// run runs a command under locks.
func (a *app) run(ctx context.Context, f runFlags, names, command []string) error {
	w, err := a.wrapper(f, names, command)
	if err != nil {
		return err
	}
	defer w.close()
	defer w.startHelpers()()
	lock, err := f.acquire(ctx, w, f.acquirer(w.client, names).Acquire, w.release)
	if err != nil {
		return err
	}
	defer w.release(lock)
	result, err := w.run(lock)
	if err != nil {
		return err
	}
	code, err := w.outcome(lock, result)
	return cmp.Or(err, exit(code))
}

// outcome returns the exit code for the end of a command. The error, of a lock that was lost, has it.
func (w *wrapper) outcome(lock *zklock.Lock, result run.Result) (int, error) {
	switch {
	case result.Signal != nil:
		return run.SignalCode(result.Signal), nil
	case result.Lost:
		w.quiet = true
		return exitLost, fail(exitLost, lost(lock, result))
	}
	return run.ExitCode(result.Status), nil
}

// lost returns the error for a lock that was lost while the command ran.
func lost(lock *zklock.Lock, result run.Result) error {
	if err := lock.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w: the ensemble did not renew its lease; the command got TERM, and has ended with %d while the lock was still held", zklock.ErrLost, run.ExitCode(result.Status))
}

// startFailure returns the error for a command that cannot be started.
func startFailure(err error) error {
	switch {
	case errors.Is(err, run.ErrNotFound):
		return fail(exitNotFound, err)
	case errors.Is(err, run.ErrNotExecutable):
		return fail(exitNotExecutable, err)
	}
	return fail(exitFailure, err)
}

// acquirer returns what the flags ask for.
func (f *runFlags) acquirer(client *zklock.Client, names []string) zklock.Acquirer {
	if f.permits > 0 {
		return client.Semaphore(names[0], f.permits)
	}
	each := make([]zklock.Acquirer, len(names))
	for i, name := range names {
		if each[i] = client.Mutex(name); f.shared {
			each[i] = client.RWMutex(name).Reader()
		}
	}
	if len(each) == 1 {
		return each[0]
	}
	return zklock.All(each...)
}

// acquire acquires the locks, by a call of take. A signal ends the wait, and giveBack gets locks that were acquired
// meanwhile.
func (f *runFlags) acquire(ctx context.Context, w *wrapper,
	take func(context.Context, ...zklock.AcquireOption) (*zklock.Lock, error), giveBack func(*zklock.Lock)) (*zklock.Lock, error) {
	label := f.label
	if label == "" {
		label = filepath.Base(w.command[0])
	}
	opts := []zklock.AcquireOption{zklock.WithLabel(label), zklock.WithRevocable()}
	if f.candidate {
		opts = append(opts, zklock.WithCandidacy())
	}
	if f.try || f.limited {
		opts = append(opts, zklock.WithWait(f.wait))
	}
	if !f.try && !f.candidate { // --try does not wait, and a candidate does so on purpose
		ctx = zklock.ContextWithCallerLocks(ctx, w.outer...)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		lock *zklock.Lock
		err  error
	}
	acquired := make(chan outcome, 1)
	go func() {
		lock, err := take(ctx, opts...)
		acquired <- outcome{lock, err}
	}()
	late := time.NewTimer(helpersTime)
	defer late.Stop()
	for {
		select {
		case o := <-acquired:
			if o.err == nil {
				return o.lock, nil
			}
			code := codeOf(o.err)
			if code == exitNotAcquired {
				if code = f.exitCode; f.quiet && !errors.Is(o.err, zklock.ErrDeadlock) {
					return nil, &failure{code: code, err: o.err, silent: true}
				}
				return nil, fail(code, fmt.Errorf("%w%s", o.err, holding(w.client, w.names, o.err.Error())))
			}
			return nil, fail(code, o.err)
		case <-late.C:
			w.helpers.End() // two processes for a wait without end would be too many
		case sig := <-w.signals.Caught():
			if !run.EndsWait(sig) {
				continue // there is no command yet that could get it
			}
			cancel()
			if o := <-acquired; o.err == nil {
				giveBack(o.lock)
			}
			return nil, exit(run.SignalCode(sig))
		}
	}
}

// helpersTime bounds the time for which helpers wait for the lock. After it, their start is a small part of the whole.
const helpersTime = time.Second

// holding says of each name which process holds it, or one of those that do, if the error of an
// acquisition does not: without a wait it read nothing, and after a wait it names the contender ahead,
// which may wait itself.
func holding(client *zklock.Client, names []string, said string) (text string) {
	ctx, cancel := context.WithTimeout(context.Background(), holdingTime)
	defer cancel()
	for _, name := range names {
		queue, err := client.Contenders(ctx, name)
		if err != nil {
			continue // what the acquisition has said is enough
		}
		if held := operator.Show(name, "", queue, nil).Holders(); len(held) > 0 && !strings.Contains(said, "held by "+held[0].Named()) {
			text += fmt.Sprintf("; %s holds %q, %s", held[0].Named(), name, held[0].Lasts(time.Now()))
		}
	}
	return text
}

// holdingTime bounds the reading of queues for a message. A signal in it ends nothing earlier.
const holdingTime = 2 * time.Second
