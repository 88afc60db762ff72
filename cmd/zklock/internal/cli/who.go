package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

func init() { subcommands = append(subcommands, (*app).whoCommand) }

func (a *app) whoCommand() *cobra.Command {
	var f format
	var tree bool
	cmd := &cobra.Command{
		Use:   "who NAME",
		Short: "Show which processes hold a lock and wait for it",
		Long: `Show which processes hold a lock and wait for it, in the order of the queue. ASKED is the time since
the process asked for the lock, by the clocks of both machines: a holder may have waited for a part
of that. A state of "keeps" means that the process may keep the lock between uses; "leader" and
"candidate" are those of an election, or of another acquisition that is meant to last. REVOKED, with
the reason, is there if a contender was asked to give the lock back. With -o wide, REVOCABLE says whether
its program looks for such a request, and the label is there to its end; "?" is not known.

With --tree, each contender is below the one that it waits for, and after that comes what holds the name up: below
each holder the names that it waits for, with their holders, and so on to the process at the end, which waits
for no lock. It is the one to look at. So --tree reads all names.

Deadlocks that the name is in are below the queue. They exist for a moment only, since one of their waits
fails, unless their clients cannot look for them.

NODE identifies one contender, as zklock release takes it.`,
		Example: "  zklock who orders/42\n  zklock who -o json orders/42 | jq '.contenders[] | select(.held) | .host'",
		Args:    names(1, 1),

		ValidArgsFunction: a.completeNames(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if tree && f == formatJSON {
				return usage("--tree and -o json do not go together")
			}
			c, err := a.reader()
			if err != nil {
				return err
			}
			defer c.Close()
			queue, missing, err := queueOf(cmd.Context(), c, args[0])
			if err != nil {
				return failed(err)
			}
			if len(queue) == 0 && f != formatJSON {
				a.messages.printf("no process holds %q or waits for it%s", args[0], ifRootMissing(missing))
			}
			out := bufio.NewWriter(a.out)
			switch {
			case f == formatJSON:
				err = writeJSON(out, operator.Show(args[0], c.Mutex(args[0]).Path(), queue, nil))
			case tree:
				if err = writeTree(out, queue, time.Now()); err == nil && len(queue) > 0 {
					return written(a.writeChain(cmd.Context(), out, c, args[0]), out.Flush())
				}
			default:
				err = writeQueue(out, queue, time.Now(), f == formatWide)
			}
			if f != formatJSON && len(queue) > 0 && err == nil {
				err = a.writeDeadlocks(cmd.Context(), out, c, args[0])
			}
			return written(err, out.Flush())
		},
	}
	f.addTo(cmd, formatTable, formatWide, formatJSON)
	cmd.Flags().BoolVar(&tree, "tree", false, "show each contender below the one that it waits for, and what holds the name up, across names")
	return cmd
}

// writeChain writes what holds a name up, across names, and the process at the end.
func (a *app) writeChain(ctx context.Context, w io.Writer, c *zklock.Client, name string) error {
	var locks []zklock.LockInfo
	for info, err := range c.Locks(ctx, "") {
		if err != nil {
			a.messages.printf("%v", err) // the rest is of use
			continue
		}
		locks = append(locks, info)
	}
	register, err := operator.ReadRegister(ctx, c, locks)
	if err != nil {
		a.messages.printf("%v", err)
	}
	shown := make([]operator.Lock, len(locks))
	var of operator.Lock
	for i, info := range locks {
		if shown[i] = operator.Show(info.Name, info.Path, info.Contenders, nil); info.Name == name {
			of = shown[i]
		}
	}
	tree := operator.Tree(of, shown, register)
	if len(tree) == 0 {
		return nil
	}
	lines := []string{""}
	if slices.ContainsFunc(tree, func(b operator.Branch) bool { return b.Depth > 0 || b.Relation != operator.Holding }) {
		lines = append(lines, "what holds it up:")
		for _, b := range tree {
			lines = append(lines, strings.Repeat("  ", b.Depth+1)+operator.Escape(b.String(time.Now())))
		}
	}
	if held, end, ok := operator.EndOf(name, tree); ok {
		lines = append(lines, "at the end: "+operator.Escape(end.Named()+" holds "+held)+", and waits for no lock as far as is known: look at that process",
			"  "+operator.Revocation(held, end))
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// writeDeadlocks writes the deadlocks that a name is in at this moment.
func (a *app) writeDeadlocks(ctx context.Context, w io.Writer, c *zklock.Client, name string) error {
	found, err := operator.ReadRegister(ctx, c, nil)
	if err != nil {
		a.messages.printf("%v", err)
	}
	in := operator.Within(found.Dead, func(l zklock.DeadlockLink) bool { return l.Held == name })
	for _, b := range operator.Circles(in) {
		if _, err := fmt.Fprintln(w, strings.Repeat("  ", b.Depth)+operator.Escape(b.String(time.Now()))); err != nil {
			return err
		}
	}
	return nil
}

// queueOf returns the queue of a name. If the root does not exist, that is missing, and the queue is
// empty.
func queueOf(ctx context.Context, c *zklock.Client, name string) (queue []zklock.Contender, missing, err error) {
	queue, err = c.Contenders(ctx, name)
	if isRootMissing(err) {
		return nil, err, nil
	}
	return queue, nil, err
}

// ifRootMissing returns what a message that nothing was found says of a root that does not exist.
func ifRootMissing(missing error) string {
	if missing == nil {
		return ""
	}
	return ": the root of the URL does not exist, so no lock was used there, or the URL has another root"
}

// names is a check of arguments that are names of locks.
func names(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usage("the arguments are not those of: " + cmd.UseLine())
		}
		if len(args) > 0 {
			if err := zklock.CheckName(args[0]); err != nil {
				return fail(exitUsage, fmt.Errorf("%q: %w", args[0], err))
			}
		}
		return nil
	}
}

// written returns the error of a command that has written its output.
func written(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return fail(exitFailure, fmt.Errorf("write the output: %w", err))
		}
	}
	return nil
}

// writeQueue writes a queue as a table.
func writeQueue(w io.Writer, queue []zklock.Contender, now time.Time, wide bool) error {
	title := []string{"STATE", "MODE", "ASKED", "PROCESS", "LABEL", "NODE"}
	revoked := !wide && slices.ContainsFunc(queue, func(c zklock.Contender) bool { return c.Revoked != "" })
	switch {
	case wide:
		title = append(title, "SESSION", "REVOCABLE", "REVOKED", "TRACE")
	case revoked:
		title = append(title, "REVOKED")
	}
	t := newTable(w, title...)
	for _, c := range queue {
		label := operator.Short(c.Label)
		if wide {
			label = c.Label
		}
		row := []string{state(c), c.Mode.String(), age(c.Since, now), owner(c), dash(label), node(c)}
		switch {
		case wide:
			row = append(row, operator.Hex(c.Session), revocable(c), dash(c.Revoked), dash(c.Trace))
		case revoked:
			row = append(row, dash(c.Revoked))
		}
		if err := t.row(row...); err != nil {
			return err
		}
	}
	return t.end()
}

// revocable returns whether the program of a contender gets requests to give the lock back.
func revocable(c zklock.Contender) string {
	switch {
	case c.Revocable:
		return "yes"
	case c.Foreign || c.Kept:
		return "?"
	}
	return "no"
}

// maxIndent limits the indentation of a tree: a queue of writers is as deep as it is long.
const maxIndent = 20

// writeTree writes each contender below the nearest one that blocks it.
func writeTree(w io.Writer, queue []zklock.Contender, now time.Time) error {
	children := make([][]int, len(queue))
	var roots []int
	for i := range queue {
		if ahead, _ := operator.WaitsFor(queue, i); len(ahead) > 0 {
			children[ahead[0]] = append(children[ahead[0]], i)
		} else {
			roots = append(roots, i)
		}
	}
	type entry struct{ i, depth int }
	var stack []entry
	push := func(of []int, depth int) {
		for n := len(of) - 1; n >= 0; n-- {
			stack = append(stack, entry{of[n], depth})
		}
	}
	for push(roots, 0); len(stack) > 0; {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		c := queue[e.i]
		indent := strings.Repeat("  ", min(e.depth, maxIndent))
		if e.depth > maxIndent {
			indent += fmt.Sprintf("(%d) ", e.depth)
		}
		if _, err := fmt.Fprintf(w, "%s%s %s %s, %s, %s\n", indent, owner(c), state(c), c.Mode, dash(c.Label), age(c.Since, now)); err != nil {
			return err
		}
		push(children[e.i], e.depth+1)
	}
	return nil
}
