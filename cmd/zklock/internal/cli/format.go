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
	return fmt.Errorf("want one of %s", strings.Join(v.known, ", "))
}

// contenderJSON is a contender as JSON. Session ids and zxids are strings: they exceed the
// integers that JavaScript has.
type contenderJSON struct {
	Node    string `json:"node"` // without its zxid
	Zxid    string `json:"zxid"`
	Session string `json:"session"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Label   string `json:"label"`
	Trace   string `json:"trace"`
	Mode    string `json:"mode"`
	Held    bool   `json:"held"`
	Kept    bool   `json:"kept"`
	Foreign bool   `json:"foreign"`
	Revoked string `json:"revoked"`
	Since   string `json:"since"` // RFC 3339; "" if it is not known
}

// lockJSON is a name with its queue as JSON.
type lockJSON struct {
	Name       string          `json:"name"`
	Path       string          `json:"path"`
	Contenders []contenderJSON `json:"contenders"`
}

func jsonOf(name, path string, queue []zklock.Contender) lockJSON {
	l := lockJSON{Name: name, Path: path, Contenders: make([]contenderJSON, len(queue))}
	for i, c := range queue {
		l.Contenders[i] = contenderJSON{
			Node: c.Node, Zxid: hexID(c.Zxid), Session: hexID(c.Session), Host: c.Host, PID: c.PID, Label: c.Label, Trace: c.Trace,
			Mode: c.Mode.String(), Held: c.Held, Kept: c.Kept, Foreign: c.Foreign, Revoked: c.Revoked, Since: rfc3339(c.Since),
		}
	}
	return l
}

// hexID returns the id of a session or a transaction as ZooKeeper's tools print it.
func hexID(id int64) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// writeJSON writes a value on one line.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// node returns the text that names a contender to the command release. No two contenders ever have
// the same.
func node(c zklock.Contender) string { return escape(c.Node) + "@" + hexID(c.Zxid) }

// owner returns what is known of the process of a contender.
func owner(c zklock.Contender) string {
	text := "?"
	switch {
	case c.Host != "" && c.PID != 0:
		text = escape(c.Host) + "/" + strconv.Itoa(c.PID)
	case c.Host != "":
		text = escape(c.Host)
	case c.Foreign:
		text = "(another library)"
	}
	return text
}

// state returns what a contender does.
func state(c zklock.Contender) string {
	switch {
	case c.Held && c.Kept:
		return "keeps"
	case c.Held:
		return "holds"
	}
	return "waits"
}

// age returns how long ago a time was; "-" for a time that is not known.
func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	d := now.Sub(since)
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return d.Truncate(100 * time.Millisecond).String()
	}
	return d.Truncate(time.Second).String()
}

// dash returns a text, escaped, or "-" for none: a column is never empty.
func dash(text string) string {
	if text == "" {
		return "-"
	}
	return escape(text)
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
