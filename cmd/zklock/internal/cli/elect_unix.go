//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/cmd/zklock/internal/run"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/election"
)

func init() { subcommands = append(subcommands, (*app).electCommand) }

const electHelp = `Run a command while this process leads an election, again and again. The command is dead before
another candidate can lead, as "zklock run" promises, with the same exceptions.

When the command has ended, for any reason, zklock resigns. It stands again after a pause of about
a second; after a term of less than 30s the pause is twice as long as the last one, up to 30s. An
outage, or a lease that was not renewed, ends the term and not the candidacy.

INT and TERM go to the command. When the command is dead, zklock resigns and ends, with the
command's exit code. HUP and QUIT do the same if they end the command, and so does INT that a
terminal sends to the command alone: a command that catches it goes on. USR1 and USR2 only go to
the command. In a pause, and while another candidate leads, TERM, INT and HUP end zklock at once.
"zklock revoke" sends TERM to the command: zklock resigns when the command is dead, and stands
again.

The name is that of a lock: "zklock who NAME" lists the leader and the candidates, and "zklock run
NAME" excludes the leader. The environment of the command has ZKLOCK_NAME, ZKLOCK_PATH and
ZKLOCK_TOKEN, which is greater in each term.

With --observe there is no command. zklock prints the leader, now and after each change, until INT
or TERM: one line, with the time, the process, the value and the token. A line with "none" means
that no candidate leads, and one with "unknown" that the ensemble cannot be reached.

zklock asks for a session timeout of 30s, unless the URL sets one.

` + exitTable

func (a *app) electCommand() *cobra.Command {
	var f runFlags
	var output format
	observe := false
	cmd := &cobra.Command{
		Use:   "elect NAME -- COMMAND [ARGUMENT...]",
		Short: "Run a command while leader, again and again",
		Long:  electHelp,
		Example: `  zklock elect billing -- ./bill
  zklock elect --label 10.0.0.7:8080 billing -- ./bill
  zklock elect --observe billing
  zklock elect --observe -o json billing`,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeNames(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.notice(cmd)
			if observe {
				if cmd.ArgsLenAtDash() >= 0 || len(args) != 1 {
					return usage("--observe takes one name, and no command")
				}
				return a.observe(cmd.Context(), args[0], output)
			}
			names, command, err := f.check(args, cmd.ArgsLenAtDash())
			switch {
			case err != nil:
				return err
			case len(names) > 1:
				return usage("an election has one name")
			case cmd.Flags().Changed("output"):
				return usage("-o belongs to --observe")
			case f.limited && f.wait <= 0:
				return usage("--wait is not more than 0: a candidate has to wait; zklock run --try does not")
			}
			return a.elect(cmd.Context(), f, names[0], command)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&observe, "observe", false, "print the leaders, and run nothing")
	flags.DurationVar(&f.wait, "wait", 0, "how long to wait for the first term (default: without end)")
	flags.StringVar(&f.label, "label", "", "what others read of the leader, such as its address (default: the host and the process id)")
	flags.IntVarP(&f.exitCode, "exit-code", "E", exitNotAcquired, "the exit code if the candidate did not lead within --wait")
	f.addCommonTo(cmd)
	output.addTo(cmd, formatTable, formatJSON)
	return cmd
}

// candidacy is an elect that runs.
type candidacy struct {
	*wrapper
	election *election.Election
	end      context.CancelCauseFunc // ends the election's Run, with the reason
	led      bool                    // there was a term
}

// elect runs a command in each term of this process.
func (a *app) elect(ctx context.Context, f runFlags, name string, command []string) error {
	w, err := a.wrapper(f, []string{name}, command)
	if err != nil {
		return err
	}
	defer w.close()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c := &candidacy{wrapper: w, end: end, election: election.New(w.client, name,
		election.WithValue(f.label), election.WithLogger(a.messages.logger()), election.WithRevocable())}
	stop := c.listen(ctx)
	// The ping finds a mistake in the URL at once. Run would stand again after each failure, and a
	// mistake does not end by itself.
	err = w.client.Ping(ctx)
	if err == nil {
		err = c.stand(ctx, stop)
	} else {
		stop()
	}
	var reason *failure
	if errors.As(context.Cause(ctx), &reason) {
		return reason
	}
	return failed(err)
}

// stand runs the election. Once the candidacy has ended, it waits for the resignation no longer than releaseTime:
// the command is dead then, or was never started.
func (c *candidacy) stand(ctx context.Context, stop func()) error {
	ended := make(chan error, 1)
	go func() {
		err := c.election.Run(ctx, func(_ context.Context, t *election.Term) error {
			stop()
			if ctx.Err() != nil {
				return nil // a signal has come in between
			}
			c.led = true
			err := c.lead(t)
			stop = c.listen(ctx)
			return err
		})
		stop()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	c.messages.mute()
	late := time.NewTimer(releaseTime)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		c.pending = true
		return nil // ctx has the reason
	}
}

// lead runs the command for one term. It ends the candidacy if the command's end says that the
// candidate must not stand again.
func (c *candidacy) lead(t *election.Term) error {
	result, err := c.wrapper.run(t.Lock)
	switch {
	case err != nil:
		c.end(err)
	case result.Signal != nil:
		c.end(ended(run.SignalCode(result.Signal)))
	case result.Ended && result.Lost:
		c.end(fail(exitLost, lost(t.Lock, result)))
	case result.Ended:
		c.end(ended(run.ExitCode(result.Status)))
	case result.Lost:
		c.messages.printf("the command is dead, and the candidate stands again: %s", strings.TrimPrefix(lost(t.Lock, result).Error(), "zklock: "))
	default:
		c.messages.printf("the command has ended with %d: the candidate resigns, and stands again", run.ExitCode(result.Status))
	}
	return nil
}

// listen ends the candidacy by a signal, or when the wait for the first term is over. While the
// command runs, signals are for the command: the caller calls stop before that, which waits for
// the end of listen's goroutine.
func (c *candidacy) listen(ctx context.Context) (stop func()) {
	halt, done := make(chan struct{}), make(chan struct{})
	limited := c.flags.limited && !c.led
	go func() {
		defer close(done)
		var late <-chan time.Time
		if limited {
			timer := time.NewTimer(c.flags.wait)
			defer timer.Stop()
			late = timer.C
		}
		for {
			select {
			case <-halt:
				return
			case <-ctx.Done():
				return
			case <-late:
				c.end(fail(c.flags.exitCode, fmt.Errorf("%w: the candidate did not lead within %v", zklock.ErrNotAcquired, c.flags.wait)))
				return
			case sig := <-c.signals.Caught():
				if run.EndsWait(sig) {
					c.end(ended(run.SignalCode(sig)))
					return
				}
			}
		}
	}()
	once := false
	return func() {
		if !once {
			once = true
			close(halt)
			<-done
		}
	}
}

// ended returns the reason for the end of a candidacy that prints nothing.
func ended(code int) error { return &failure{code: code, err: os.ErrProcessDone, silent: true} }
