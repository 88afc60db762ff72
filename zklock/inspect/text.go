package inspect

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zklock/go-zklock/internal/operator"
)

// writeText writes the page as text, for terminals.
func (p page) writeText(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s\n", operator.Escape(p.Client), operator.Printable(p.Own))
	if p.Silent != 0 {
		fmt.Fprintf(w, "no answer from the ensemble since %s\n", time.UnixMilli(p.Silent).Format(time.RFC3339))
	}
	if p.Error != "" {
		fmt.Fprintln(w, operator.Printable(p.Error))
		return
	}
	if p.Left.New() {
		fmt.Fprintf(w, "%s, %s ago\n", operator.Escape(p.Left.String()), p.Left.Since().Age(time.Now(), false))
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer t.Flush()
	row := func(columns ...string) {
		for i, text := range columns {
			if text == "" {
				text = "-"
			}
			columns[i] = operator.Escape(text)
		}
		fmt.Fprintln(t, strings.Join(columns, "\t"))
	}
	if p.Doubt != "" {
		fmt.Fprintln(t, operator.Printable(p.Doubt))
	}
	lines := func() {
		for _, b := range p.Tree {
			fmt.Fprintln(t, strings.Repeat("  ", b.Depth)+operator.Escape(b.String(time.Now())))
		}
	}
	if p.Query.Name == "" && len(p.Tree) > 0 {
		lines()
		fmt.Fprintln(t)
	}
	switch {
	case p.Query.Name != "":
		fmt.Fprintf(t, "%s  %s\n\n", operator.Escape(p.Query.Name), operator.Escape(p.Lock.Path))
		if len(p.Lock.Contenders) == 0 {
			fmt.Fprintln(t, "No client holds this name or waits for it.")
		} else {
			row("#", "STATE", "MODE", "SINCE", "PROCESS", "WAITS FOR", "LABEL", "NODE")
		}
		for i, c := range p.Lock.Contenders {
			row(strconv.Itoa(i+1), stateOf(c), c.Mode, c.Lasts(time.Now()), c.Process(), p.waitsOf(c), operator.Short(c.Label), c.ID())
		}
		if p.Here > 0 {
			fmt.Fprintf(t, "\nwaiting in this process: %s\n", many(p.Here, "request"))
		}
		fmt.Fprintln(t)
		lines()
	case p.Query.Process():
		fmt.Fprintf(t, "%s %s\n\n", operator.Escape(p.Query.Subject()), p.Does())
		row("NAME", "STATE", "MODE", "SINCE", "WAITERS", "LABEL", "NODE")
		for _, part := range p.Parts {
			row(part.Name, stateOf(part.Contender), part.Mode, part.Contender.Lasts(time.Now()), strconv.Itoa(part.Behind), operator.Short(part.Label), part.ID())
		}
	default:
		fmt.Fprintf(t, "%s\n\n", operator.Escape(p.Total.String()))
		row("NAME", "HELD BY", "HELD", "WAITERS", "LONGEST WAIT", "LABEL")
		for _, r := range p.Rows {
			if r.Error != "" {
				row(r.Name, r.Error)
				continue
			}
			holder, label, since := "-", "-", "-"
			if len(r.Held) > 0 {
				holder, label, since = r.Held[0].Process(), r.Held[0].Label, r.Held[0].Lasts(time.Now())
				if role := r.Held[0].Role(); role != "" {
					holder += " (" + role + ")"
				}
			}
			if n := len(r.Held) - 1; n > 0 {
				holder += fmt.Sprintf(" and %d more", n)
			}
			row(r.Name, holder, since, r.Waiting(), r.Oldest.Age(time.Now(), false), operator.Short(label))
		}
		if p.To() < p.Found {
			fmt.Fprintf(t, "\n%s of %s names; next: page=%d\n", thousands(p.To()), thousands(p.Found), p.Query.Page+1)
		}
	}
}

// stateOf returns what a contender does.
func stateOf(c operator.Contender) string {
	text := "waits"
	switch role := c.Role(); {
	case c.Stray:
		text = "left over"
	case role != "":
		text = role
	case c.Held && c.Kept:
		text = "keeps"
	case c.Held:
		text = "holds"
	}
	if c.Late > 0 {
		text += " (created " + strconv.FormatInt(c.Late, 10) + "s late)"
	}
	if c.Revoked != "" {
		text += " (asked to give it back: " + c.Revoked + ")"
	}
	return text
}

// waitsOf returns the positions of those that a contender of the page's name waits for.
func (p page) waitsOf(c operator.Contender) string {
	var places []string
	for _, node := range blockers(c) {
		places = append(places, "#"+strconv.Itoa(place(p.Lock, node)))
	}
	text := strings.Join(places, " ")
	if n := len(c.Waits) - len(places); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if c.One {
		text = "one of " + text
	}
	return text
}

// Waiting returns how many processes wait for a name, how many acquisitions of this process, and how
// many candidates.
func (r row) Waiting() string {
	text := thousands(r.Waiters)
	if r.Here > 0 {
		text += " and " + many(r.Here, "request") + " here"
	}
	switch {
	case r.Stand > 0 && r.Waiters+r.Here == 0:
		return many(r.Stand, "candidate")
	case r.Stand > 0:
		text += " and " + many(r.Stand, "candidate")
	}
	return text
}

// String returns the head line of the list.
func (t total) String() string {
	now := time.Now()
	text := many(t.Names, "name") + ", " + many(t.Waiters, "waiting process")
	if t.Here > 0 {
		text += " and " + many(t.Here, "request") + " of this process"
	}
	if t.Candidates > 0 {
		text += ", " + many(t.Candidates, "candidate")
	}
	if t.Deadlocks > 0 {
		text += ", " + many(t.Deadlocks, "deadlock")
	}
	if t.Unsent > 0 {
		text += ", " + many(t.Unsent, "write") + " not sent yet"
	}
	if t.Full != "" {
		text += ", " + t.Full
	}
	if t.Since == 0 {
		return text
	}
	text += ", longest wait " + t.Since.Age(now, false) + ": " + t.Longest.Name
	if t.Held {
		text += ", held by " + t.Holder.Named()
		if t.Holder.HeldSince != 0 {
			text += " for " + t.Holder.HeldSince.Age(now, false)
		} else if t.Holder.Since != 0 {
			text += ", which asked " + t.Holder.Since.Age(now, false) + " ago"
		}
	}
	if t.MoverName != "" {
		text += "; its process waits, in the end, for " + t.MoverName + ", held by " + t.Mover.Named()
	}
	return text
}
