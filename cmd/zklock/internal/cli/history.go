package cli

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/contrib/locktest/txnlog"
	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

func init() { subcommands = append(subcommands, (*app).historyCommand) }

func (a *app) historyCommand() *cobra.Command {
	var f format
	var logs []string
	cmd := &cobra.Command{
		Use:   "history --log DIR [NAME]",
		Short: "Show past holders and waiters, from the files of servers",
		Long: `Show which processes held the locks of an ensemble, or one of them, and waited for them, from the
transaction logs and snapshots of its servers, after the fact. DIR is a copy of a server's dataDir, or the folder itself,
which is only read; if the server has a dataLogDir, copy the files of both into one folder. No server
needs to run, and no URL is needed.

One server's log may have a few transactions at its end that were never committed. With the folders of
all voting servers, each in a --log of its own, those are left out.

ASKED, HELD and UNTIL are times of the leader's clock, in the zone of this machine. A row is one entry of
a queue. A process may have passed its lock from one of its goroutines to the next in between: then LABEL
is that of the newest that it has shown. END says how the entry ended: the client has released it or given
up its wait, its session was closed or has expired, or another session has deleted it, as zklock release
does. TOKEN is the beginning of the fencing token.

-o bars draws a line of time: an entry waits in the cells with a dot, and holds in those with a #. One
that ends with > was still there when the files end.`,
		Example: "  zklock history --log /var/lib/zookeeper orders/42\n  zklock history --log /var/lib/zookeeper -o bars orders/42\n  zklock history --log a --log b --log c -o json | jq '.[] | select(.end == \"session expired\")'",
		Args:    names(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(logs) == 0 {
				return usage("--log is missing: name the folder of a server's transaction logs, its dataLogDir or dataDir")
			}
			past, err := readHistory(logs)
			if err != nil {
				return fail(exitConfiguration, err)
			}
			out := bufio.NewWriter(a.out)
			n, err := past.write(out, f, args)
			if err := written(err, out.Flush()); err != nil {
				return err
			}
			of := ""
			if len(args) > 0 {
				of = fmt.Sprintf(" of %q", args[0])
			}
			if n == 0 && f != formatJSON {
				a.messages.printf("the files have no holder and no waiter%s", of)
			}
			a.messages.printf("the files reach from %s to %s; what ended before is not in them", instant(operator.MillisOf(past.from)), instant(operator.MillisOf(past.to)))
			return nil
		},
	}
	f.addTo(cmd, formatTable, formatWide, formatBars, formatJSON)
	cmd.Flags().StringArrayVar(&logs, "log", nil, "a server's folder of transaction logs; may be repeated")
	_ = cmd.MarkFlagDirname("log")
	return cmd
}

// past is what the files of servers have.
type past struct {
	stays    []*txnlog.Stay
	from, to time.Time // of the oldest and the newest transaction
}

// readHistory reads the folders of one server, or of all. The newest of their beginnings is where all of them go on.
func readHistory(dirs []string) (past, error) {
	var start *txnlog.Tree
	for _, dir := range dirs {
		t, err := txnlog.Start(dir)
		if err != nil {
			return past{}, err
		}
		if start == nil || t.Zxid > start.Zxid {
			start = t
		}
	}
	queues := txnlog.NewQueues(start)
	var p past
	for t, err := range txnlog.Committed(dirs, start.Zxid) {
		if err != nil {
			return past{}, err
		}
		if p.from.IsZero() {
			p.from = t.Time
		}
		p.to = t.Time
		queues.Apply(t)
	}
	p.stays = queues.Stays()
	return p, nil
}

// write writes the entries of a name, or of all, in the order in which they asked. It returns how many there are.
func (p past) write(w io.Writer, f format, name []string) (n int, err error) {
	rows := []entry{} // JSON of none is []
	for _, s := range p.stays {
		if len(name) == 0 || s.Name == name[0] {
			rows = append(rows, entryOf(s))
		}
	}
	switch f {
	case formatJSON:
		return len(rows), writeJSON(w, rows)
	case formatBars:
		return len(rows), writeBars(w, rows, operator.MillisOf(p.to))
	}
	title := []string{"NAME", "MODE", "CLIENT", "LABEL", "ASKED", "HELD", "UNTIL", "END", "TOKEN"}
	if f == formatWide {
		title = append(title, "TRACE", "SESSION", "PATH")
	}
	t := newTable(w, title...)
	for _, e := range rows {
		row := []string{operator.Escape(e.Name), e.Mode, e.client(), dash(e.Label), instant(e.Asked), instant(e.Held), instant(e.Until), dash(e.End), e.Token}
		if f == formatWide {
			row = append(row, dash(e.Trace), e.Session, operator.Escape(e.Path))
		}
		if err := t.row(row...); err != nil {
			return 0, err
		}
	}
	return len(rows), t.end()
}

// described is what a client has written of itself into its entry.
type described struct {
	Host  string `json:"host,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Label string `json:"label,omitempty"`
	Trace string `json:"trace,omitempty"`
}

// entry is a row, as JSON has it. Times that are not known are null: an entry that never held, and one that has not ended.
type entry struct {
	Name string `json:"name"`
	Mode string `json:"mode"`
	described
	Asked   operator.Millis `json:"asked"`
	Held    operator.Millis `json:"held"`
	Until   operator.Millis `json:"until"`
	End     string          `json:"end,omitempty"`
	Token   string          `json:"token"`
	Session string          `json:"session"`
	Path    string          `json:"path"`
}

// client names the process of an entry.
func (e entry) client() string {
	return owner(zklock.Contender{Host: e.Host, PID: e.PID, Foreign: e.Host == "" && e.PID == 0})
}

// entryOf returns the row of an entry of a queue.
func entryOf(s *txnlog.Stay) entry {
	e := entry{Name: s.Name, Mode: zklock.Exclusive.String(), Token: zklock.Token{Zxid: s.Zxid}.String(), Session: operator.Hex(s.Session), Path: s.Path}
	e.Asked, e.Held, e.Until = operator.MillisOf(s.Created), operator.MillisOf(s.Turn), operator.MillisOf(s.Gone)
	_ = json.Unmarshal(s.Data, &e.described) // another library's data say nothing
	switch {
	case s.Permits > 0:
		e.Mode = zklock.Permit.String()
	case s.Shared:
		e.Mode = zklock.Shared.String()
	}
	switch {
	case s.Gone.IsZero():
	case s.Expired:
		e.End = "session expired"
	case s.Closed:
		e.End = "session closed"
	case s.By != s.Session:
		e.End = "deleted by session " + operator.Hex(s.By)
	case s.Turn.IsZero():
		e.End = "gave up"
	default:
		e.End = "released"
	}
	return e
}

// instant returns a time in the zone of this machine, or "-".
func instant(m operator.Millis) string {
	if m == 0 {
		return "-"
	}
	return time.UnixMilli(int64(m)).Format("2006-01-02 15:04:05.000 MST")
}
