package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// report has all results of a run.
type report struct {
	Head    []string  `json:"head"`
	Results []result  `json:"results"`
	Verdict []verdict `json:"targets"`
	Servers int       `json:"servers,omitempty"` // 0 if there are results for several numbers
}

// verdict is the result for one target.
type verdict struct {
	Row      string  `json:"workload"`
	Figure   string  `json:"figure"`
	Against  string  `json:"against,omitempty"`
	Target   string  `json:"target"`
	Measured float64 `json:"measured"`
	Lowest   float64 `json:"lowest,omitempty"`  // of the single runs
	Highest  float64 `json:"highest,omitempty"` // of the single runs
	OK       bool    `json:"ok"`
	Missing  string  `json:"missing,omitempty"` // the reason why the figure is missing
}

// verdicts returns the result for each target of the workloads.
func verdicts(results []result) (all []verdict) {
	for _, r := range results {
		for _, t := range r.row.targets {
			v := verdict{Row: r.Row, Figure: t.unit, Against: t.against, Target: t.String()}
			m, ok := r.measured(t)
			if ok {
				v.Measured, v.OK = m, t.met(m)
				v.Lowest, v.Highest, _ = r.spread(t)
			} else {
				v.Missing = "not measured"
				if why := r.Absent[t.against]; why != "" {
					v.Missing = why
				}
			}
			all = append(all, v)
		}
	}
	return all
}

// write judges the results, and writes the report to all places that the options name. before is the
// processors' time before the measurement.
func (r report) write(o options, out io.Writer, before shares) error {
	r.Verdict = verdicts(r.Results)
	if took := processorTime().since(before); took != "" {
		r.Head = append(r.Head, took)
	}
	err := errors.Join(write(o.json, out, r.json), write(o.markdown, out, r.markdown))
	if o.json != "-" {
		err = errors.Join(err, r.text(out))
	}
	return err
}

func (r report) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(r)
}

// columns are the heads of the table of figures. In workloads that are done once a turn, the third
// column has the time until all waiters had the lock; in those that only wait, the transactions of
// a process. The JSON has all other figures.
var columns = []string{"workload", "library", "cycles/s", "acquire p50", "p99", "zklock's cycles/s"}

// table has the heads of its columns, and its rows.
type table struct {
	head  []string
	lines [][]string
}

// figures returns the tables of figures. The workloads with a load have one of their own.
func (r report) figures() (all []table) {
	if len(r.Results) > 0 && r.Results[0].row.killed {
		return []table{successors(r.Results)}
	}
	var cycles, loads []result
	for _, res := range r.Results {
		if res.row.load != nil {
			loads = append(loads, res)
		} else {
			cycles = append(cycles, res)
		}
	}
	if len(cycles) > 0 || len(loads) == 0 {
		all = append(all, table{columns, lines(cycles)})
	}
	if len(loads) > 0 {
		all = append(all, goodputs(loads))
	}
	return all
}

func lines(results []result) (all [][]string) {
	for _, res := range results {
		for i, who := range res.Who {
			name := res.Row
			if i > 0 {
				name = ""
			}
			line := []string{name, who}
			for _, c := range []struct {
				figure string
				show   func(float64) string
			}{
				{"rate", func(v float64) string { return fmt.Sprintf("%.0f", v) }},
				{"acquire50", micros}, {"acquire99", micros},
			} {
				switch {
				case res.row.wait && c.figure == "rate":
					line = append(line, fmt.Sprintf("%.3g writes/min", res.median(who, "writes")))
				case res.row.once && c.figure == "rate" && res.has(who, "seconds"):
					line = append(line, fmt.Sprintf("%.2fs", res.median(who, "seconds")))
				case res.row.once || !res.has(who, c.figure):
					line = append(line, "")
				default:
					line = append(line, c.show(res.median(who, c.figure)))
				}
			}
			all = append(all, append(line, res.ratio(who)))
		}
	}
	return all
}

// ratio says how zklock's throughput compares with that of another contestant.
func (r result) ratio(who string) string {
	against := target{figure: "rate", against: who}
	if r.row.once {
		against = target{figure: "seconds", against: who, inverse: true}
	}
	times, ok := r.measured(against)
	if who == ours || !ok {
		return ""
	}
	return fmt.Sprintf("%.4gx", times)
}

// micros formats a time that is given in microseconds.
func micros(v float64) string {
	d := time.Duration(v * float64(time.Microsecond))
	switch {
	case d == 0:
		return ""
	case d < 10*time.Microsecond:
		return d.Round(10 * time.Nanosecond).String()
	case d < 10*time.Millisecond:
		return d.Round(time.Microsecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

var verdictColumns = []string{"workload", "figure", "against", "target", "measured", "lowest–highest run", ""}

// measuredColumns is the number of columns that the documentation shows. The last two columns of
// the table are for the terminal only: how far single runs differ, and what the columns target and
// measured show already.
const measuredColumns = 5

func (v verdict) line() []string {
	unit := ""
	if v.Against != "" {
		unit = "x"
	}
	measured, result := fmt.Sprintf("%.3g%s", v.Measured, unit), "ok"
	switch {
	case v.Missing != "":
		measured, result = v.Missing, "no figure"
	case !v.OK:
		result = "missed"
	}
	spread := ""
	if v.Highest != 0 {
		spread = fmt.Sprintf("%.3g%s–%.3g%s", v.Lowest, unit, v.Highest, unit)
	}
	return []string{v.Row, v.Figure, v.Against, v.Target, measured, spread, result}
}

// verdictLines returns the rows of the table of targets. A row about the workload of the row above
// does not repeat its name.
func (r report) verdictLines() (all [][]string) {
	for i, v := range r.Verdict {
		line := v.line()
		if i > 0 && v.Row == r.Verdict[i-1].Row {
			line[0] = ""
		}
		all = append(all, line)
	}
	return all
}

// text writes the tables for a terminal.
func (r report) text(w io.Writer) error {
	for _, line := range r.Head {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w)
	show := func(t table) error {
		tabs := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, line := range append([][]string{t.head}, t.lines...) {
			fmt.Fprintln(tabs, strings.Join(line, "\t"))
		}
		return tabs.Flush()
	}
	for i, t := range r.figures() {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := show(t); err != nil {
			return err
		}
	}
	for _, res := range r.Results {
		for who, why := range res.Absent {
			fmt.Fprintf(w, "%s: without %s: %s\n", res.Row, who, why)
		}
	}
	fmt.Fprintln(w)
	return show(table{verdictColumns, r.verdictLines()})
}

// markdown writes the same tables for the documentation. The targets are for one server, so the
// table with them is left out if there are more.
func (r report) markdown(w io.Writer) error {
	var b strings.Builder
	for _, line := range r.Head {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	if r.Servers <= 1 {
		lines := r.verdictLines()
		for i, line := range lines {
			lines[i] = line[:measuredColumns]
		}
		b.WriteString("\n" + table{verdictColumns[:measuredColumns], lines}.markdown())
	}
	for _, t := range r.figures() {
		b.WriteString("\n" + t.markdown())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t table) markdown() string {
	var b strings.Builder
	row := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row(t.head)
	b.WriteString("|" + strings.Repeat("---|", len(t.head)) + "\n")
	for _, line := range t.lines {
		row(line)
	}
	return b.String()
}
