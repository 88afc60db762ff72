package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

func init() { subcommands = append(subcommands, (*app).lsCommand) }

func (a *app) lsCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List the names in use, with their holders",
		Long: `List the names that processes hold or wait for, in byte order. PREFIX is one of the name. ASKED is the
time since the first holder asked for the lock: it may have waited for a part of that. LONGEST WAIT
is the same for the first waiter. WAITERS are processes: requests that wait behind another one of
their process are not in the queue. All by the clocks of both machines.`,
		Example: "  zklock ls\n  zklock ls -o wide orders/",
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
			return a.list(cmd.Context(), c, prefix, f)
		},
	}
	f.addTo(cmd, formatTable, formatWide, formatJSON)
	return cmd
}

// isRootMissing reports whether an error says that there are no names, because there is no root.
func isRootMissing(err error) bool { return zklock.Reason(err) == "root_missing" }

// list writes the names in use, each when it has been read: a list of any length takes little
// memory. Names that may not be read are reported at its end.
func (a *app) list(ctx context.Context, c *zklock.Client, prefix string, f format) error {
	out := bufio.NewWriter(a.out)
	l := newLister(out, f)
	var first error
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
	var holder, waiter *zklock.Contender
	holders := 0
	for i := range info.Contenders {
		switch c := &info.Contenders[i]; {
		case c.Held:
			if holders++; holder == nil {
				holder = c
			}
		case waiter == nil:
			waiter = c
		}
	}
	mode, who, since, longest := "-", "-", "-", "-"
	if holder != nil {
		mode, who, since = holder.Mode.String(), owner(*holder), age(holder.Since, now)
	}
	if holders > 1 {
		who += fmt.Sprintf(" and %d more", holders-1)
	}
	if waiter != nil {
		longest = age(waiter.Since, now)
	}
	columns := []string{operator.Escape(info.Name), mode, who, since, strconv.Itoa(len(info.Contenders) - holders), longest}
	if !wide {
		return columns
	}
	label, id, session := "-", "-", "-"
	if holder != nil {
		label, id, session = dash(holder.Label), node(*holder), operator.Hex(holder.Session)
	}
	return append(columns, label, id, session, operator.Escape(info.Path))
}
