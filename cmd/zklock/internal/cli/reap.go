package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/internal/sessiondir"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

func init() { subcommands = append(subcommands, (*app).reapCommand) }

func (a *app) reapCommand() *cobra.Command {
	wait := false
	cmd := &cobra.Command{
		Use:   "reap DIR",
		Short: "Free the locks of processes of this machine that have died",
		Long: `Free the locks of processes of this machine that have died. DIR is their session directory, the value of
the key session_dir in their URL. The command ends the sessions that the directory has of dead
processes, and prints a line about each. It touches no session of a process that lives. It needs
no URL: the directory's files name the servers.

It has to run as the user of the processes. It makes DIR if that is missing. It tries for one session
timeout, and leaves the files of servers that it cannot reach or that refuse it. The exit code is 0
also if there was nothing to end, and if a session could not be ended: that one expires by itself.
It is 78 if DIR cannot be a session directory.

With --wait it goes on until INT or TERM, also with processes that die later. One such process is
enough for a directory, and any client with the same session_dir does the same.`,
		Example: "  zklock reap /run/shop\n  zklock reap --wait /run/shop",
		Args:    directory,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reap(cmd.Context(), args[0], wait)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "go on until INT or TERM")
	return cmd
}

// directory checks that there is one argument.
func directory(cmd *cobra.Command, args []string) error {
	if len(args) != 1 || args[0] == "" {
		return usage("the arguments are not those of: " + cmd.UseLine())
	}
	if err := sessiondir.CheckPath(args[0]); err != nil {
		return usage(fmt.Sprintf("DIR: %v", err))
	}
	return nil
}

// reap ends the sessions of dead processes.
func (a *app) reap(ctx context.Context, dir string, wait bool) error {
	if wait {
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	logger := a.messages.loggerFrom(slog.LevelInfo)
	_, err := sessiondir.Reap(ctx, dir, wait, opener(logger), func() *slog.Logger { return logger })
	if err != nil {
		return fail(exitConfiguration, err)
	}
	return nil
}

// opener returns a function that opens connectors to the servers that session files name.
func opener(logger *slog.Logger) sessiondir.Opener {
	return func(e sessiondir.Ensemble) (driver.Connector, error) {
		u := driver.URL{Scheme: e.Scheme, Hosts: e.Hosts, User: e.User, Params: make(url.Values), Logger: logger}
		for key, value := range e.Params {
			u.Params.Set(key, value)
		}
		return zkdriver.Driver{}.OpenConnector(u)
	}
}
