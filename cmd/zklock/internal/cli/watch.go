package cli

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

func init() { subcommands = append(subcommands, (*app).watchCommand) }

func (a *app) watchCommand() *cobra.Command {
	var f format
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Follow the queue of a lock, one line an event",
		Long: `Follow the queue of a lock until INT or TERM, one line an event. The events are

  present   the contender is in the queue at the beginning, or after a time in which it was unknown
  arrived   the contender has joined the queue
  granted   the contender holds the lock
  changed   the contender's label has changed, or it was asked to give the lock back
  left      the contender has left the queue
  unknown   the ensemble cannot be reached at the moment
  empty     after a time in which it was unknown, no contender is in the queue

Changes that follow each other fast may be reported as one: a contender that comes and goes at once
may not be reported, and one that is granted the lock at once has arrived and holds it.`,
		Example: "  zklock watch -o json orders/42 | jq -c 'select(.event == \"granted\") | .contender.host'",
		Args:    names(1, 1),

		ValidArgsFunction: a.completeNames(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.reader()
			if err != nil {
				return err
			}
			defer c.Close()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			w := &eventWriter{w: a.out, f: f, name: args[0]}
			return follow(ctx, c.Watch(ctx, args[0]), nil, func(queue []zklock.Contender, err error) error {
				if err != nil {
					return w.unknown(err, time.Now())
				}
				return w.show(queue, time.Now())
			})
		},
	}
	f.addTo(cmd, formatTable, formatJSON)
	return cmd
}

// event is what happened to a contender.
type event struct {
	what      string
	contender zklock.Contender
}

// events compares two states of a queue. first means that there is no state to compare with.
func events(before, after []zklock.Contender, first bool) []event {
	type key struct {
		node string
		zxid int64
	}
	known := make(map[key]zklock.Contender, len(before))
	for _, c := range before {
		known[key{c.Node, c.Zxid}] = c
	}
	there := make(map[key]bool, len(after))
	var found []event
	for _, c := range after {
		k := key{c.Node, c.Zxid}
		there[k] = true
		old, ok := known[k]
		switch {
		case first:
			found = append(found, event{"present", c})
		case !ok:
			found = append(found, event{"arrived", c})
		case c.Held && !old.Held:
			found = append(found, event{"granted", c})
		case c.Label != old.Label || c.Revoked != old.Revoked || c.Kept != old.Kept || c.Mode != old.Mode:
			found = append(found, event{"changed", c})
		}
	}
	// Those that left come first: others were granted the lock because of them.
	var left []event
	for _, c := range before {
		if !there[key{c.Node, c.Zxid}] {
			left = append(left, event{"left", c})
		}
	}
	return append(left, found...)
}

// eventWriter writes the events of one queue.
type eventWriter struct {
	w     io.Writer
	f     format
	name  string
	known bool // last is the state of the queue
	last  []zklock.Contender
	holds operator.Holds
}

// eventJSON is an event as JSON.
type eventJSON struct {
	Time      string              `json:"time"`
	Event     string              `json:"event"`
	Name      string              `json:"name"`
	Contender *operator.Contender `json:"contender,omitempty"`
	Reason    string              `json:"reason,omitempty"` // of unknown
}

// show writes what has changed.
func (w *eventWriter) show(queue []zklock.Contender, now time.Time) error {
	if w.known {
		w.holds.Unchanged() // the client has watched the queue
	}
	found := events(w.last, queue, !w.known)
	before, after := operator.Show(w.name, "", w.last, nil).Contenders, operator.Show(w.name, "", queue, &w.holds).Contenders
	if !w.known && w.last != nil && len(queue) == 0 { // after an outage, there is no other event
		if err := w.empty(now); err != nil {
			return err
		}
	}
	w.last, w.known = queue, true
	for _, e := range found {
		for _, c := range append(after, before...) { // those that left are in before only
			if c.Node == e.contender.Node && c.Zxid == operator.Hex(e.contender.Zxid) {
				if err := w.write(e, c, now); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// empty writes that the queue is known again, and that no contender is in it.
func (w *eventWriter) empty(now time.Time) error {
	if w.f == formatJSON {
		return writeJSON(w.w, eventJSON{Time: rfc3339(now), Event: "empty", Name: w.name})
	}
	_, err := fmt.Fprintf(w.w, "%s  empty\n", now.Format(clock))
	return err
}

// write writes an event. shown is its contender.
func (w *eventWriter) write(e event, shown operator.Contender, now time.Time) error {
	c := e.contender
	if w.f == formatJSON {
		return writeJSON(w.w, eventJSON{Time: rfc3339(now), Event: e.what, Name: w.name, Contender: &shown})
	}
	revoked := ""
	if c.Revoked != "" {
		revoked = "  asked to give it back: " + operator.Escape(c.Revoked)
	}
	_, err := fmt.Fprintf(w.w, "%s  %-7s  %s  %-9s  %s  %s  %s%s\n", now.Format(clock), e.what, state(c), c.Mode, owner(c), dash(c.Label), node(c), revoked)
	return err
}

// unknown writes that the state is not known, once.
func (w *eventWriter) unknown(why error, now time.Time) error {
	if !w.known && w.last == nil {
		w.last = []zklock.Contender{}
	} else if !w.known {
		return nil
	}
	w.known, w.last = false, []zklock.Contender{}
	if w.f == formatJSON {
		return writeJSON(w.w, eventJSON{Time: rfc3339(now), Event: "unknown", Name: w.name, Reason: why.Error()})
	}
	_, err := fmt.Fprintf(w.w, "%s  unknown  %s\n", now.Format(clock), operator.Printable(why.Error()))
	return err
}

// clock is the form of a time in lines for people: with a zone, since a terminal may be at a machine in another one.
const clock = "15:04:05.000Z07:00"
