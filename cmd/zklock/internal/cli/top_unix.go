//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/cmd/zklock/internal/screen"
	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

func init() { subcommands = append(subcommands, (*app).topCommand) }

func (a *app) topCommand() *cobra.Command {
	var every time.Duration
	by := order("waiters")
	cmd := &cobra.Command{
		Use:   "top [PREFIX]",
		Short: "Show the busiest names, live",
		Long: `Show the names with the most waiters, and those that have been held for the longest time, again and
again; with --sort wait, those first that processes have waited for the longest time. The leader of an
election and its candidates hold and wait for long on purpose: such names come last. PREFIX is one of
the name. q or Ctrl-C ends it, and leaves the terminal as it was.`,
		ValidArgsFunction: a.completeNames(1),
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usage("the arguments are not those of: " + cmd.UseLine())
			case every < minEvery:
				return usage(fmt.Sprintf("--every is at least %v", minEvery))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.reader(zklock.WithLogger(nil)) // a message would disturb the screen
			if err != nil {
				return err
			}
			defer c.Close()
			return top(cmd.Context(), c, strings.Join(args, ""), by, every)
		},
	}
	by.addTo(cmd)
	cmd.Flags().DurationVar(&every, "every", time.Second, "how soon a change shows; later if reading all names takes a quarter of that time")
	return cmd
}

// minEvery limits what a screen costs the servers.
const minEvery = 200 * time.Millisecond

// top shows overviews until a key or a signal ends it.
func top(ctx context.Context, c *zklock.Client, prefix string, by order, every time.Duration) error {
	s, err := screen.Open(os.Stdin, os.Stdout)
	if errors.Is(err, screen.ErrNoTerminal) {
		return usage("top needs a terminal: use ls in scripts")
	} else if err != nil {
		return fail(exitFailure, err)
	}
	defer s.Close()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		awaitQuit(os.Stdin)
	}()
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	var o overview
	var holds operator.Holds
	patience := time.Duration(0) // 0 for the first look: the screen must not stay empty until it ends
	last := time.Duration(0)     // what the last look has taken
	for ctx.Err() == nil {
		const otherLines = 5 // around the rows
		_, height := s.Size()
		began := time.Now()
		looked := make(chan overview, 1)
		go func() { looked <- look(ctx, c, prefix, height-otherLines, by, &holds) }()
		late := time.NewTimer(patience)
		for waits := true; waits; {
			var lines []string
			select {
			case o = <-looked:
				if waits = false; ctx.Err() != nil {
					continue
				}
				width, _ := s.Size()
				lines = o.lines(width)
			case <-late.C:
				width, _ := s.Size()
				lines = o.connecting(time.Now(), width)
			}
			if err := s.Draw(lines); err != nil {
				if cancel(); waits {
					<-looked
				}
				return written(err)
			}
		}
		late.Stop()
		took := time.Since(began)
		patience = max(every, 2*took)                         // many names take long without an outage
		timer := time.NewTimer(pause(every, min(took, last))) // one look takes long in an outage, each with many names
		last = took
		select {
		case <-timer.C:
		case <-resized:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// pause returns how long to wait between two looks, if each takes as long as took. A change must be
// on the screen within the time every. In the worst case it happens right after a look has read its
// name, and shows at the end of the next look. So two looks and the pause take four fifths of
// every; the last fifth is for everything else, such as the terminal. The pause is at least as long
// as a look: the servers need a rest.
func pause(every, took time.Duration) time.Duration {
	return max(every*4/5-2*took, took, minEvery/2)
}

// awaitQuit returns when a key that ends top was pressed, or when there are no more keys. The
// goroutine that calls it ends with the process: a read of a terminal cannot be taken back.
func awaitQuit(keys io.Reader) {
	const ctrlC = 3
	b := make([]byte, 64)
	for {
		n, err := keys.Read(b)
		for _, key := range b[:n] {
			if key == 'q' || key == 'Q' || key == ctrlC {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
