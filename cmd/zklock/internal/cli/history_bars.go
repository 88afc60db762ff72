package cli

import (
	"bytes"
	"io"
	"strings"
	"time"

	"github.com/zklock/go-zklock/internal/operator"
)

// formatBars draws when each entry waited and held, on one line of time.
const formatBars = "bars"

// barCells is the width of the line of time.
const barCells = 60

// The cells of a bar: a time without the entry, one in which it waited, one in which it held, and the end of the files, at which it was
// still there.
const (
	cellNone  = ' '
	cellWaits = '.'
	cellHolds = '#'
	cellGoes  = '>'
)

// writeBars writes a row for each entry. The line of time begins with the first request, and ends with the last end, or with the files if
// an entry is still there then.
func writeBars(w io.Writer, rows []entry, end operator.Millis) error {
	if len(rows) == 0 {
		return nil
	}
	from, to := rows[0].Asked, operator.Millis(0)
	for _, e := range rows {
		from, to = min(from, e.Asked), max(to, e.until(end))
	}
	begins, ends := clockTime(from), clockTime(to)
	t := newTable(w, "NAME", "CLIENT", "LABEL", "WAITED", "HELD", begins+strings.Repeat(" ", barCells-len(begins)-len(ends))+ends)
	for _, e := range rows {
		if err := t.row(operator.Escape(e.Name), e.client(), dash(e.Label), between(e.Asked, e.waited(end)), between(e.Held, e.until(end)), e.bar(from, to, end)); err != nil {
			return err
		}
	}
	return t.end()
}

// until is when an entry ended, or the end of the files.
func (e entry) until(end operator.Millis) operator.Millis {
	if e.Until == 0 {
		return end
	}
	return e.Until
}

// waited is until when an entry waited.
func (e entry) waited(end operator.Millis) operator.Millis {
	if e.Held == 0 {
		return e.until(end)
	}
	return e.Held
}

// bar draws an entry on the line from one time to another. A cell has the most that the entry was in it: a hold that is shorter than
// a cell shows, too.
func (e entry) bar(from, to, end operator.Millis) string {
	cell := func(at operator.Millis) int {
		return min(int(int64(at-from)*barCells/max(int64(to-from), 1)), barCells-1)
	}
	bar := bytes.Repeat([]byte{cellNone}, barCells)
	fill := func(begin, end operator.Millis, c byte) {
		for i := cell(begin); i <= cell(end); i++ {
			bar[i] = c
		}
	}
	if e.Held != e.Asked {
		fill(e.Asked, e.waited(end), cellWaits)
	}
	if e.Held != 0 {
		fill(e.Held, e.until(end), cellHolds)
	}
	if e.Until == 0 {
		bar[barCells-1] = cellGoes
	}
	return strings.TrimRight(string(bar), string(cellNone))
}

// between is how long it was from one time to another, "-" if the first is not known.
func between(from, to operator.Millis) string {
	if from == 0 {
		return "-"
	}
	return (time.Duration(to-from) * time.Millisecond).String()
}

// clockTime returns the time of the day in the zone of this machine.
func clockTime(m operator.Millis) string {
	return time.UnixMilli(int64(m)).Format("01-02 15:04:05.000 MST")
}
