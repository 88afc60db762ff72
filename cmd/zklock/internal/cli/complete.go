package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

// Limits of completion: a shell waits for it.
const (
	completionTime = 2 * time.Second
	completions    = 500
)

// completeNames completes the arguments of a command that are names of locks, most of them, or all
// in front of a "--".
func (a *app) completeNames(most int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if slices.Contains(a.args[:max(len(a.args)-1, 0)], "--") { // cobra adds one itself, which ArgsLenAtDash counts
			return nil, cobra.ShellCompDirectiveDefault // of the command to run
		}
		if len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return a.namesFrom(cmd.Context(), begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeNodes completes NAME NODE@ZXID.
func (a *app) completeNodes(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var found []cobra.Completion
	switch len(args) {
	case 0:
		found = a.namesFrom(cmd.Context(), begun)
	case 1:
		a.complete(cmd.Context(), func(ctx context.Context, c *zklock.Client) {
			queue, _ := c.Contenders(ctx, args[0]) // none: there is nothing to complete
			for _, contender := range queue {
				found = append(found, cobra.CompletionWithDesc(node(contender), state(contender)+" "+owner(contender)+" "+dash(contender.Label)))
			}
		})
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// namesFrom returns the names in use that begin with a text.
func (a *app) namesFrom(ctx context.Context, begun string) (found []cobra.Completion) {
	a.complete(ctx, func(ctx context.Context, c *zklock.Client) {
		for info, err := range c.Locks(ctx, begun) {
			if err != nil && info.Name == "" || len(found) == completions {
				return
			}
			if operator.Escape(info.Name) == info.Name {
				found = append(found, info.Name)
			}
		}
	})
	return found
}

// complete runs a function with a client. If there is no ensemble, nothing is completed, and nothing
// printed.
func (a *app) complete(ctx context.Context, run func(context.Context, *zklock.Client)) {
	cfg, err := a.config()
	if err != nil {
		return
	}
	cfg.RequireRoot, cfg.ConnectTimeout = true, completionTime
	c, err := a.open(cfg, zklock.WithLogger(nil))
	if err != nil {
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	run(ctx, c)
}
