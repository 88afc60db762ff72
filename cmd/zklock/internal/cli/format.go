package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zklock/go-zklock/internal/nearest"
	"github.com/zklock/go-zklock/internal/operator"
	"github.com/zklock/go-zklock/zklock"
)

// Formats of lists.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
)

// format is the flag -o.
type format string

// addTo adds the flag to a command.
func (f *format) addTo(cmd *cobra.Command, known ...string) {
	*f = format(known[0])
	cmd.Flags().VarP(&formatValue{f, known}, "output", "o", "the format: "+strings.Join(known, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
}

// formatValue is the flag's value as pflag wants it.
type formatValue struct {
	f     *format
	known []string
}

// String returns the format.
func (v *formatValue) String() string {
	if v.f == nil {
		return ""
	}
	return string(*v.f)
}

// Type returns the name of the value in the help.
func (v *formatValue) Type() string { return "format" }

// Set sets the format.
func (v *formatValue) Set(text string) error {
	for _, known := range v.known {
		if text == known {
			*v.f = format(text)
			return nil
		}
	}
	return fmt.Errorf("want one of %s%s", strings.Join(v.known, ", "), nearest.Hint(text, v.known))
}

// rfc3339 returns a time as JSON has it.
func rfc3339(t time.Time) string { return operator.MillisOf(t).String() }

// writeJSON writes a value on one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// node returns the text that names a contender to the command release. No two contenders ever have
// the same.
func node(c zklock.Contender) string { return operator.Escape(c.Node) + "@" + operator.Hex(c.Zxid) }

// owner returns what is known of the process of a contender.
func owner(c zklock.Contender) string {
	text := "?"
	switch {
	case c.Host != "" && c.PID != 0:
		text = operator.Escape(c.Host) + "/" + strconv.Itoa(c.PID)
	case c.Host != "":
		text = operator.Escape(c.Host)
	case c.Foreign:
		text = "(another library)"
	}
	return text
}

// state returns what a contender does.
func state(c zklock.Contender) string {
	text := "waits"
	switch role := operator.RoleOf(c); {
	case role != "":
		text = role
	case c.Held && c.Kept:
		text = "keeps"
	case c.Held:
		text = "holds"
	}
	if c.Late > 0 {
		text += fmt.Sprintf(", created %ds late", c.Late/time.Second)
	}
	return text
}

// age returns how long ago a time was; "-" for a time that is not known.
func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return operator.MillisOf(since).Age(now, true)
}

// dash returns a text, escaped, or "-" for none: a column is never empty.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return operator.Escape(text)
}

// tableRows is how many rows of a table are aligned with each other. A table of any length
// takes the memory of so many rows.
const tableRows = 500

// table aligns columns.
type table struct {
	w     *tabwriter.Writer
	title []string
	rows  int
}

func newTable(w io.Writer, title ...string) *table {
	return &table{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.StripEscape), title: title}
}

// row adds a row. Its texts must be escaped already.
func (t *table) row(columns ...string) error {
	if t.rows == 0 {
		if err := t.write(t.title); err != nil {
			return err
		}
	}
	if t.rows++; t.rows%tableRows == 0 {
		if err := t.w.Flush(); err != nil {
			return err
		}
	}
	return t.write(columns)
}

func (t *table) write(columns []string) error {
	_, err := io.WriteString(t.w, strings.Join(columns, "\t")+"\n")
	return err
}

// end writes the rows that have not been written yet.
func (t *table) end() error { return t.w.Flush() }
