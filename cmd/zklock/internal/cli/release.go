package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

func init() { subcommands = append(subcommands, (*app).releaseCommand) }

func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release NAME NODE@ZXID",
		Short: "Delete a contender's node, as a last resort",
		Long: `Delete the node of one contender from the queue of a lock, as a last resort: of a holder that hangs, or
of a process that is gone and whose session has not expired yet.

Deleting the node of a holder ends exclusion. A holder that still runs notices only after the next
one may have the lock. Only the tokens protect the resource then. A waiter queues again at the end.

NODE@ZXID is the node as zklock who prints it. If the queue does not have that very node, nothing
is deleted, and the exit code is 1.`,
		Args: names(2, 2),

		ValidArgsFunction: a.completeNodes,
		RunE: func(cmd *cobra.Command, args []string) error {
			name, zxid, err := parseNode(args[1])
			if err != nil {
				return fail(exitUsage, err)
			}
			c, err := a.reader()
			if err != nil {
				return err
			}
			defer c.Close()
			return failed(release(cmd.Context(), c, args[0], name, zxid))
		},
	}
}

// parseNode parses NODE@ZXID.
func parseNode(text string) (node string, zxid int64, err error) {
	at := strings.LastIndexByte(text, '@')
	if at > 0 {
		digits := strings.TrimPrefix(text[at+1:], "0x")
		if z, err := strconv.ParseUint(digits, 16, 63); err == nil && z > 0 {
			return text[:at], int64(z), nil
		}
	}
	return "", 0, fmt.Errorf("%q is not a node with its zxid: copy NODE from the list of the queue, such as _c_…-0000000003@0x10000002a", text)
}

// release deletes a node from the queue of a name, if it has that zxid: the servers compare the
// zxids when they delete the node.
func release(ctx context.Context, c *zklock.Client, name, node string, zxid int64) error {
	err := c.Break(ctx, name, fmt.Sprintf("%s@%#x", node, zxid))
	if errors.Is(err, driver.ErrNoNode) || errors.Is(err, zklock.ErrConflict) || isRootMissing(err) {
		return fail(exitToDo, fmt.Errorf("nothing was deleted: %w", err))
	}
	return err
}
