package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

func init() { subcommands = append(subcommands, (*app).revokeCommand) }

func (a *app) revokeCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "revoke NAME NODE@ZXID",
		Short: "Ask a holder to give a lock back",
		Long: `Ask a holder to give a lock back. The request is written into the node of the holder, with a reason for
its log. The holder decides: "zklock run" and "zklock elect" send TERM to their command, once. A
program learns of it if it acquires with WithRevocable: "zklock who -o wide" shows which holders do.
Any other holder keeps the lock, and revoke says so; and so does one that ignores the request:
"zklock release" is the last resort.

NODE@ZXID is the node as zklock who prints it. If the queue does not have that very node, nothing
is written, and the exit code is 1. It is also 1 if the holder belongs to a library that cannot be
asked. A waiter is asked as soon as it holds the lock.`,
		Example: `  zklock revoke --reason 'host web-3 goes down at 18:00' billing _c_…-__WRIT__0000000003@0x10000002a`,
		Args:    names(2, 2),

		ValidArgsFunction: a.completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			node, zxid, err := parseNode(args[1])
			if err != nil {
				return fail(exitUsage, err)
			}
			c, err := a.reader()
			if err != nil {
				return err
			}
			defer c.Close()
			if err := revoke(cmd.Context(), c, args[0], node, zxid, reason); err != nil {
				return failed(err)
			}
			a.reportEffect(cmd.Context(), c, args[0], node)
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a text for the holder's log")
	return cmd
}

// reportEffect says what a request that was written does, if it does not reach a holder now.
func (a *app) reportEffect(ctx context.Context, c *zklock.Client, name, node string) {
	queue, err := c.Contenders(ctx, name)
	at := slices.IndexFunc(queue, func(c zklock.Contender) bool { return c.Node == node })
	if err != nil || at < 0 {
		return // it has left
	}
	switch revocable(queue[at]) {
	case "yes":
		if !queue[at].Held {
			a.messages.printf("the request is written, and %s waits: it is asked when it holds the lock", owner(queue[at]))
		}
	case "no":
		a.messages.printf("the request is written, but the program of %s does not look for one: it acquires without WithRevocable, and keeps the lock until it releases it", owner(queue[at]))
	case "?":
		a.messages.printf("the request is written, and whether the program of %s looks for one is not known", owner(queue[at]))
	}
}

// revoke asks a holder to give the lock back, if its node has that zxid.
func revoke(ctx context.Context, c *zklock.Client, name, node string, zxid int64, reason string) error {
	err := c.Revoke(ctx, name, fmt.Sprintf("%s@%#x", node, zxid), reason)
	if errors.Is(err, driver.ErrNoNode) || errors.Is(err, zklock.ErrConflict) || isRootMissing(err) {
		return fail(exitToDo, fmt.Errorf("the holder was not asked: %w", err))
	}
	return err
}
