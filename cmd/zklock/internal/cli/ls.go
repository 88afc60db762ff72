package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

func init() { subcommands = append(subcommands, (*app).lsCommand) }

func (a *app) lsCommand() *cobra.Command {
	var f format
	by := order("name")
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the names in use, with their holders",
		Long: `List the names that processes hold or wait for, in byte order, or with --sort wait those first that
processes have waited for the longest time. PREFIX is one of the name. ASKED is the time since the
first holder asked for the lock: it may have waited for a part of that. LONGEST WAIT is the same for
the first waiter. WAITERS are processes: requests that wait behind another one of their process are
not in the queue. All by the clocks of both machines.

The leader of an election and its candidates hold and wait for long on purpose. They are shown as
such, and no order but that of the names puts them first.`,
		Example: "  zklock ls\n  zklock ls --sort wait | head\n  zklock ls -o wide orders/",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("the arguments are not those of: " + cmd.UseLine())
			}
			return nil
		},
		ValidArgsFunction: a.completeNames(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := ""
			if len(args) == 1 {
				prefix = args[0]
			}
			c, err := a.reader()
			if err != nil {
				return err
			}
			defer c.Close()
			return a.list(cmd.Context(), c, prefix, f, by)
		},
	}
	f.addTo(cmd, formatTable, formatWide, formatJSON)
	by.addTo(cmd)
	return cmd
}

// isRootMissing reports whether an error says that there are no names, because there is no root.
func isRootMissing(err error) bool { return zklock.Reason(err) == "root_missing" }

// list writes the names in use. In the order of their names, each is written when it has been read: a
// list of any length takes little memory. Names that may not be read are reported at its end.
func (a *app) list(ctx context.Context, c *zklock.Client, prefix string, f format, by order) error {
	out := bufio.NewWriter(a.out)
	l := newLister(out, f)
	var first error
	var all []zklock.LockInfo // only if they are to be sorted
	for info, err := range c.Locks(ctx, prefix) {
		if err != nil {
			if isRootMissing(err) {
				continue
			}
			if first == nil {
				first = err
			} else {
				a.messages.printf("%v", err)
			}
			continue
		}
		if orders[by] != nil {
			all = append(all, info)
		} else if err := l.add(info); err != nil {
			return written(err)
		}
	}
	by.sort(all)
	for _, info := range all {
		if err := l.add(info); err != nil {
			return written(err)
		}
	}
	if err := written(l.end(), out.Flush()); err != nil {
		return err
	}
	if l.n == 0 && first == nil && f != formatJSON {
		_, missing, _ := queueOf(ctx, c, "any") // a list of no names does not say why
		beginning := ""
		if prefix != "" {
			beginning = fmt.Sprintf(" that begins with %q", prefix)
		}
		a.messages.printf("no name%s is in use%s", beginning, ifRootMissing(missing))
	}
	return failed(first)
}

// lister writes names in one of the formats.
type lister struct {
	w     io.Writer
	f     format
	table *table
	n     int
	now   time.Time
}

func newLister(w io.Writer, f format) *lister {
	title := []string{"NAME", "MODE", "HOLDER", "ASKED", "WAITERS", "LONGEST WAIT"}
	if f == formatWide {
		title = append(title, "LABEL", "NODE", "SESSION", "PATH")
	}
	return &lister{w: w, f: f, table: newTable(w, title...), now: time.Now()}
}

func (l *lister) add(info zklock.LockInfo) error {
	l.n++
	if l.f == formatJSON {
		separator := ","
		if l.n == 1 {
			separator = "["
		}
		if _, err := io.WriteString(l.w, separator); err != nil {
			return err
		}
		return writeJSON(l.w, operator.Show(info.Name, info.Path, info.Contenders, nil))
	}
	return l.table.row(row(info, l.now, l.f == formatWide)...)
}

func (l *lister) end() error {
	if l.f != formatJSON {
		return l.table.end()
	}
	text := "]\n"
	if l.n == 0 {
		text = "[]\n"
	}
	_, err := io.WriteString(l.w, text)
	return err
}

// row returns the row of a name.
func row(info zklock.LockInfo, now time.Time, wide bool) []string {
	s := summarize(info)
	mode, since, longest := "-", "-", "-"
	if s.holder != nil {
		mode, since = s.holder.Mode.String(), age(s.holder.Since, now)
	}
	if s.waiter != nil {
		longest = age(s.waiter.Since, now)
	}
	columns := []string{operator.Escape(info.Name), mode, s.owner(), since, s.waiting(), longest}
	if !wide {
		return columns
	}
	label, id, session := "-", "-", "-"
	if h := s.holder; h != nil {
		label, id, session = dash(h.Label), node(*h), operator.Hex(h.Session)
	}
	return append(columns, label, id, session, operator.Escape(info.Path))
}
