package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// columns is how wide the picture of a timeline is.
const columns = 80

// line is a row of a timeline: what is drawn from when to when, and single moments over it.
type line struct {
	label string
	parts []part
}

// part is drawn in a row.
type part struct {
	from, to int64
	sign     byte
}

// Explain draws an acquisition: a row for it, for each other one of its names that was held or asked for at the time, and for
// each fault; and below that the events in their order. In a row, . is the wait, = the time for which it is certain that the library
// believed in the hold, - what follows until its end, R and W are the accesses to the register, and # is a fault or a process that
// was killed.
func Explain(events []history.Event, id int) (string, error) {
	at := slices.IndexFunc(events, func(e history.Event) bool { return e.ID == id && id != 0 })
	if at < 0 {
		return "", fmt.Errorf("the history has no acquisition %d", id)
	}
	names := strings.Split(events[at].Name, "+")
	from, to := span(events, id)
	for _, e := range events {
		if e.ID == id && e.Kind == history.Granted {
			from = e.At // its wait may have been long
		}
	}
	margin := max((to-from)/10, int64(time.Millisecond))
	from, to = max(from-margin, 0), to+margin
	shown := map[int]bool{id: true} // acquisitions
	for _, h := range Holds(events) {
		began, ended := span(events, h.ID)
		if slices.Contains(names, h.Name) && h.Granted <= to && began <= to && ended >= from {
			shown[h.ID] = true
		}
	}
	for _, e := range events { // those that were never granted
		if e.Kind != history.Acquire || e.At > to || shown[e.ID] || len(shown) >= mostRows || !slices.ContainsFunc(strings.Split(e.Name, "+"), of(names)) {
			continue
		}
		if _, ended := span(events, e.ID); ended >= from {
			shown[e.ID] = true
		}
	}
	processes := make(map[int]bool)
	var ids []int
	for _, e := range events {
		if shown[e.ID] && e.ID != 0 {
			processes[e.Worker] = true
			if !slices.Contains(ids, e.ID) {
				ids = append(ids, e.ID)
			}
		}
	}
	if len(ids) > mostRows {
		ids = append(ids[:mostRows:mostRows], id)
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	var rows []line
	for _, id := range ids {
		rows = append(rows, row(events, id, to))
	}
	for _, f := range faults(events) {
		if end := orEnd(f.healed, to); f.At <= to && end >= from {
			rows = append(rows, line{f.Reason + f.victim(), []part{{f.At, end, '#'}}})
		}
	}
	var b strings.Builder
	draw(&b, rows, from, to)
	for _, e := range events {
		drawn := slices.Contains(ids, e.ID) && e.ID != 0
		if e.At < from || e.At > to || !drawn && e.Kind != history.Fault && e.Kind != history.Healed && !(e.ID == 0 && processes[e.Worker]) {
			continue
		}
		fmt.Fprintf(&b, "%10s  %s\n", since(e.At), describe(e))
	}
	if b.Len() == 0 {
		return "", errors.New("there is nothing to draw")
	}
	return b.String(), nil
}

// of returns a function that reports whether a name is one of names.
func of(names []string) func(string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}

// mostRows is how many acquisitions are drawn.
const mostRows = 30

// orEnd is a time, or the end of what is drawn if there is none.
func orEnd(at, end int64) int64 {
	if at == 0 {
		return end
	}
	return at
}

// span returns the times of the first and the last event of an acquisition.
func span(events []history.Event, id int) (from, to int64) {
	for _, e := range events {
		if e.ID != id {
			continue
		}
		if from == 0 {
			from = e.At
		}
		to = e.At
	}
	return from, to
}

// row draws an acquisition.
func row(events []history.Event, id int, end int64) line {
	var first history.Event
	var granted, sure, checked, ended, killed int64
	var accesses []part
	for _, e := range events {
		if e.Kind == history.Kill && e.Worker == first.Worker && first.ID != 0 && killed == 0 && ended == 0 {
			killed = e.At
		}
		if e.ID != id {
			continue
		}
		switch e.Kind {
		case history.Acquire:
			first = e
		case history.Granted:
			granted = e.At
		case history.Check:
			checked = e.At
		case history.Held:
			sure = checked
		case history.Read, history.Reread:
			accesses = append(accesses, part{e.At, e.At, 'R'})
		case history.Write:
			accesses = append(accesses, part{e.At, e.At, 'W'})
		case history.Lost, history.Released, history.Failed:
			ended = e.At
		}
	}
	over := orEnd(ended, orEnd(killed, end))
	l := line{label: fmt.Sprintf("%s %d (process %d)", first.Name, id, first.Worker)}
	if granted == 0 {
		l.parts = []part{{first.At, over, '.'}}
	} else {
		l.parts = []part{{first.At, granted, '.'}, {granted, over, '-'}}
		if sure != 0 {
			l.parts = append(l.parts, part{granted, sure, '='})
		}
	}
	if l.parts = append(l.parts, accesses...); killed != 0 && ended == 0 {
		l.parts = append(l.parts, part{killed, killed, '#'})
	}
	return l
}

// draw writes rows under a scale.
func draw(b *strings.Builder, rows []line, from, to int64) {
	wide := 0
	for _, r := range rows {
		wide = max(wide, len(r.label))
	}
	scale := fmt.Sprintf("%s to %s, %v a column", since(from), since(to), time.Duration((to-from)/columns).Round(time.Microsecond))
	fmt.Fprintf(b, "%-*s  %s\n", wide, "", scale)
	column := func(at int64) int { return int(min(max(at-from, 0), to-from) * (columns - 1) / max(to-from, 1)) }
	for _, r := range rows {
		cells := []byte(strings.Repeat(" ", columns))
		for _, p := range r.parts {
			for i := column(p.from); i <= column(p.to); i++ {
				cells[i] = p.sign
			}
		}
		fmt.Fprintf(b, "%-*s  %s\n", wide, r.label, strings.TrimRight(string(cells), " "))
	}
	b.WriteByte('\n')
}

// describe writes an event in words.
func describe(e history.Event) string {
	parts := []string{string(e.Kind)}
	add := func(ok bool, format string, args ...any) {
		if ok {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(e.ID != 0, "%d", e.ID)
	add(e.Name != "", "%s", e.Name)
	add(e.Worker != 0, "process %d", e.Worker)
	add(e.Server != 0, "server %d", e.Server)
	add(e.Token != "", "token %s", e.Token)
	add(e.Kind == history.Read || e.Kind == history.Reread, "saw %d, fenced %d", e.Value, e.Fenced)
	add(e.Refused, "refused")
	add(e.Reason != "", "%q", e.Reason)
	return strings.Join(parts, " ")
}
