package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/internal/nearest"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver" // for zk:// and zks://
)

// urlEnv is the environment variable with the URL.
const urlEnv = "ZKLOCK_URL"

// app is what the commands share.
type app struct {
	out      io.Writer
	messages *messages
	getenv   func(string) string
	open     func(cfg zklock.Config, opts ...zklock.Option) (*zklock.Client, error)

	args []string // of the command line
	url  string   // of --url
}

// Main runs the command line and returns the exit code.
func Main() int {
	if code, ran := subprocess(); ran {
		return code
	}
	return execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr, os.Getenv, zklock.OpenConfig)
}

// execute runs a command line.
func execute(ctx context.Context, args []string, out, err io.Writer, getenv func(string) string, open func(zklock.Config, ...zklock.Option) (*zklock.Client, error)) int {
	a := &app{out: out, messages: newMessages(err), getenv: getenv, open: open, args: args}
	defer a.messages.close()
	root := a.root()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(a.messages)
	failure := asFailure(root.ExecuteContext(ctx))
	if failure == nil {
		return exitOK
	}
	if !failure.silent {
		a.messages.printf("%s", inWords(failure))
	}
	return failure.code
}

// asFailure returns an error with its exit code. An error without one is cobra's, about the
// command line.
func asFailure(err error) *failure {
	var f *failure
	if err == nil || errors.As(err, &f) {
		return f
	}
	return &failure{code: exitUsage, err: err}
}

// Root returns the command with all of its subcommands, for its manual.
func Root() *cobra.Command {
	return (&app{out: io.Discard, messages: newMessages(io.Discard), getenv: os.Getenv, open: zklock.OpenConfig}).root()
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "zklock",
		Short: "Distributed locks on Apache ZooKeeper",
		Long: `zklock runs commands under distributed locks on Apache ZooKeeper, and shows which processes
hold locks and wait for them.

The URL of the ensemble comes from --url, or from the environment variable ZKLOCK_URL:

  zk://[user:password@]host:port[,host:port...][/root][?key=value[&key=value...]]

On a machine with several users, give a URL with a password in ZKLOCK_URL: other users can see
the arguments of a process.`,
		Version:           version(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
		Args:              unknownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.PersistentFlags().StringVar(&a.url, "url", "", "the URL of the ensemble; without it, $"+urlEnv+" has the URL")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(fmt.Sprintf("%v; %ssee %s --help", err, meantFlag(cmd, err), cmd.CommandPath()))
	})
	for _, add := range subcommands {
		root.AddCommand(add(a))
	}
	return root
}

// unknownCommand returns the error for an argument that is not the name of a command.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	return usage(fmt.Sprintf("unknown command %q%s; see %s --help", args[0], nearest.Hint(args[0], known), cmd.CommandPath()))
}

// meantFlag returns a hint at the flag that an unknown one is probably a mistake for.
func meantFlag(cmd *cobra.Command, err error) string {
	unknown, ok := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !ok {
		return ""
	}
	var known []string
	for _, found := range longFlag.FindAllStringSubmatch(cmd.Flags().FlagUsages()+cmd.InheritedFlags().FlagUsages(), -1) {
		known = append(known, found[1])
	}
	if near := nearest.To(unknown, known); near != "" {
		return "did you mean --" + near + "? "
	}
	return ""
}

// longFlag is the name of a flag in the list of flags.
var longFlag = regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`)

// version returns the version of the program's main module.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
