package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
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

A name under which "zklock run --once" or package once runs jobs is listed as well while it is not in
use: LAST SLOT is the slot that has run last, and RAN the time since that was recorded.

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

// list writes the names in use, and those that have a slot. In the order of their names, each is written when
// it has been read: a list of any length takes little memory. Names that may not be read are reported at its end.
func (a *app) list(ctx context.Context, c *zklock.Client, prefix string, f format, by order) error {
	var first error
	report := func(err error) {
		switch {
		case isRootMissing(err):
		case first == nil:
			first = err
		default:
			a.messages.printf("%v", err)
		}
	}
	var slots []zklock.SlotInfo
	locks := c.Locks(ctx, prefix)
	for s, err := range c.Slots(ctx, prefix) {
		var of *zklock.Error
		switch {
		case err == nil && s.Slot != "": // without one, no run has succeeded
			slots = append(slots, s)
		case err == nil:
		case errors.As(err, &of) && of.Name == "":
			locks = func(yield func(zklock.LockInfo, error) bool) { yield(zklock.LockInfo{}, err) } // they would fail as well
		default:
			report(err)
		}
	}
	out := bufio.NewWriter(a.out)
	l := newLister(out, f, len(slots) > 0)
	var all []listed // only if they are to be sorted
	add := func(n listed) error {
		if orders[by] == nil {
			return l.add(n)
		}
		all = append(all, n)
		return nil
	}
	// addIdle adds the names with slots that are not in use, up to the name next.
	addIdle := func(next string, last bool) error {
		for len(slots) > 0 && (last || slots[0].Name < next) {
			s := &slots[0]
			slots = slots[1:]
			if err := add(listed{LockInfo: zklock.LockInfo{Name: s.Name, Path: c.Mutex(s.Name).Path()}, slot: s}); err != nil {
				return err
			}
		}
		return nil
	}
	for info, err := range locks {
		if err != nil {
			report(err)
			continue
		}
		err := addIdle(info.Name, false)
		n := listed{LockInfo: info}
		if len(slots) > 0 && slots[0].Name == info.Name {
			n.slot, slots = &slots[0], slots[1:]
		}
		if err := cmp.Or(err, add(n)); err != nil {
			return written(err)
		}
	}
	if err := addIdle("", true); err != nil {
		return written(err)
	}
	by.sort(all)
	for _, n := range all {
		if err := l.add(n); err != nil {
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

// listed is a name of a list.
type listed struct {
	zklock.LockInfo
	slot *zklock.SlotInfo // nil: none has run under the name
}

// lister writes names in one of the formats.
type lister struct {
	w     io.Writer
	f     format
	slots bool // there is a column for them
	table *table
	n     int
}

func newLister(w io.Writer, f format, slots bool) *lister {
	title := []string{"NAME", "MODE", "HOLDER", "ASKED", "WAITERS", "LONGEST WAIT"}
	if slots {
		title = append(title, "LAST SLOT", "RAN")
	}
	if f == formatWide {
		title = append(title, "LABEL", "NODE", "SESSION", "PATH")
	}
	return &lister{w: w, f: f, slots: slots, table: newTable(w, title...)}
}

func (l *lister) add(n listed) error {
	l.n++
	if l.f == formatJSON {
		separator := ","
		if l.n == 1 {
			separator = "["
		}
		if _, err := io.WriteString(l.w, separator); err != nil {
			return err
		}
		shown := operator.Show(n.Name, n.Path, n.Contenders, nil)
		if n.slot != nil {
			shown.LastSlot, shown.SlotSince = n.slot.Slot, operator.MillisOf(n.slot.Recorded)
		}
		return writeJSON(l.w, shown)
	}
	return l.table.row(l.row(n)...)
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
func (l *lister) row(n listed) []string {
	s, now := summarize(n.LockInfo), time.Now() // and not the time of the call: the answer may have taken long
	mode, since, longest := "-", "-", "-"
	if s.holder != nil {
		mode, since = s.holder.Mode.String(), age(s.holder.Since, now)
	}
	if s.waiter != nil {
		longest = age(s.waiter.Since, now)
	}
	columns := []string{operator.Escape(n.Name), mode, s.owner(), since, s.waiting(), longest}
	if l.slots {
		slot, ran := "-", "-"
		if n.slot != nil && n.slot.Slot != "" {
			slot, ran = operator.Escape(n.slot.Slot), age(n.slot.Recorded, now)+" ago"
		}
		columns = append(columns, slot, ran)
	}
	if l.f != formatWide {
		return columns
	}
	label, id, session := "-", "-", "-"
	if h := s.holder; h != nil {
		label, id, session = dash(h.Label), node(*h), operator.Hex(h.Session)
	}
	return append(columns, label, id, session, operator.Escape(n.Path))
}
