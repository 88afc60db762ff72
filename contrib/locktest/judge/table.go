package judge

import (
	"fmt"
	"strings"
	"time"
)

// mostLeftovers is how many leftovers a table has.
const mostLeftovers = 40

// Table writes the figures of a run, a line each, in the form of Markdown.
func (f Figures) Table(title string) string {
	var b strings.Builder
	row := func(what string, format string, args ...any) {
		fmt.Fprintf(&b, "| %-36s | %12s |\n", what, fmt.Sprintf(format, args...))
	}
	row(title, "")
	fmt.Fprintf(&b, "|%s|%s:|\n", strings.Repeat("-", 38), strings.Repeat("-", 13))
	row("overlaps of work", "%d", f.Overlaps)
	row("overlaps after fencing", "%s", f.fenced(f.FencedOverlaps))
	row("tokens that fell", "%s", f.fenced(f.Fell))
	row("lost updates", "%d", f.Lost)
	row("lost updates after fencing", "%s", f.fenced(f.FencedLost))
	row("names stuck after the faults", "%d", len(f.Stuck))
	row("workers that crashed", "%d", f.Crashes)
	row("wait after a kill, p50", "%s", f.waited(0.5))
	row("wait after a kill, p99", "%s", f.waited(0.99))
	row("waits after a kill", "%d", len(f.Waits))
	row("grants", "%d", f.Grants)
	row("grants a second", "%.1f", f.PerSecond())
	row("acquisitions that failed", "%d", f.Failed)
	row("losses that a worker reported", "%d", f.Losses)
	row("faults", "%d", f.Faults)
	if len(f.Stuck) > 0 {
		fmt.Fprintf(&b, "\nstuck: %s\nWhat may keep them, of %d acquisitions the first:\n", strings.Join(f.Stuck, ", "), len(f.Leftovers))
	}
	// What keeps a name is older than what waits behind it.
	for _, l := range f.Leftovers[:min(len(f.Leftovers), mostLeftovers)] {
		fmt.Fprintln(&b, l)
	}
	return b.String()
}

// fenced is a figure that only tokens give a meaning.
func (f Figures) fenced(n int) string {
	if !f.Tokens {
		return "no tokens"
	}
	return fmt.Sprint(n)
}

// waited is a wait as text, or a dash.
func (f Figures) waited(part float64) string {
	if len(f.Waits) == 0 {
		return "-"
	}
	return f.Wait(part).Round(time.Millisecond / 10).String()
}
