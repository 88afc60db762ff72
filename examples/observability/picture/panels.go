package main

import (
	"bytes"
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
)

// line is a line of a panel. A value is NaN where the metric has none.
type line struct {
	label  string
	values []float64
}

// panel is a panel of the dashboard.
type panel struct {
	title, unit string
	lines       []line
	seconds     float64 // from the first value to the last
}

// drawPanels draws the dashboard's panels from the metrics that the dashboard queries.
func (r *record) drawPanels() []byte {
	ps := []panel{
		{"Acquisitions by outcome", "/s", r.rates("zklock.acquire.duration", "zklock.outcome"), 0},
		{"Wait for other holders", "s", append(r.quantiles("p50", 0.5, "zklock.wait.duration", ""), r.quantiles("p99", 0.99, "zklock.wait.duration", "")...), 0},
		{"Hold time", "s", append(r.quantiles("p50", 0.5, "zklock.hold.duration", ""), r.quantiles("p99", 0.99, "zklock.hold.duration", "")...), 0},
		{"Held and waiting", "", append(r.gauges("held ", "zklock.held"), r.gauges("waiting ", "zklock.waiting")...), 0},
		{"Requests to the ensemble, p99", "s", r.quantiles("", 0.99, "zklock.operation.duration", "zklock.operation.kind"), 0},
		{"Hand-overs", "/s", r.rates("zklock.handovers", ""), 0},
	}
	const w, h = 500, 230
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`, 2*w, (len(ps)+1)/2*h)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`, 2*w, (len(ps)+1)/2*h)
	for i, p := range ps {
		p.seconds = r.seconds()
		p.draw(&b, float64(i%2*w), float64(i/2*h), w, h)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// palette is the colours of lines, in turn.
var palette = []string{"#2563eb", "#dc2626", "#16a34a", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#65a30d", "#475569", "#ea580c"}

func (p panel) draw(b *bytes.Buffer, x, y, w, h float64) {
	left, top, right, bottom := x+50, y+32, x+w-14, y+h-56
	most := 0.0
	for _, l := range p.lines {
		for _, v := range l.values {
			if !math.IsNaN(v) {
				most = max(most, v)
			}
		}
	}
	scale := axisTo(most, p.unit)
	fmt.Fprintf(b, `<text x="%.0f" y="%.0f" font-weight="bold" font-size="13" fill="#111827">%s</text>`, left, top-12, html.EscapeString(p.title))
	for i := range scale.ticks + 1 {
		at := bottom - (bottom-top)*float64(i)/float64(scale.ticks)
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#e5e7eb"/>`, left, at, right)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="end" font-size="10" fill="#6b7280">%s</text>`, left-4, at+3, scale.label(i))
	}
	times := axisTo(p.seconds, "s")
	for i := range times.ticks + 1 {
		if at := left + (right-left)*times.step*float64(i)/p.seconds; at <= right+1 {
			fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="middle" font-size="10" fill="#6b7280">%s</text>`, at, bottom+14, times.label(i))
		}
	}
	legend := left
	for i, l := range p.lines {
		colour := palette[i%len(palette)]
		fmt.Fprint(b, `<path fill="none" stroke-width="1.5" stroke="`, colour, `" d="`)
		pen := "M"
		for j, v := range l.values {
			if math.IsNaN(v) {
				pen = "M"
				continue
			}
			fmt.Fprintf(b, "%s%.1f %.1f", pen, left+(right-left)*float64(j)/float64(max(len(l.values)-1, 1)), bottom-(bottom-top)*v/scale.end())
			pen = "L"
		}
		fmt.Fprintf(b, `"/><text x="%.1f" y="%.1f" font-size="11" fill="%s">%s</text>`, legend, bottom+32+float64(i/6)*14, colour, html.EscapeString(l.label))
		if legend += 14 + 6.2*float64(len(l.label)); i%6 == 5 {
			legend = left
		}
	}
}

// keys returns all values that an attribute of a metric had in the run.
func (r *record) keys(metric, by string) []string {
	seen := make(map[string]bool)
	for step := range r.steps() {
		for key := range r.at(step, metric, by) {
			seen[key] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// each makes a line for each value of an attribute, from two steps at a time.
func (r *record) each(prefix, metric, by string, value func(before, now point) float64) []line {
	var lines []line
	for _, key := range r.keys(metric, by) {
		l := line{label: prefix + key}
		for step := 1; step < r.steps(); step++ {
			l.values = append(l.values, value(r.at(step-1, metric, by)[key], r.at(step, metric, by)[key]))
		}
		lines = append(lines, l)
	}
	return lines
}

func (r *record) gauges(prefix, metric string) []line {
	return r.each(prefix, metric, "zklock.mode", func(_, now point) float64 { return now.Value })
}

func (r *record) rates(metric, by string) []line {
	return r.each("", metric, by, func(before, now point) float64 {
		if before.Time.IsZero() || now.Time.IsZero() {
			return math.NaN()
		}
		return (now.Count + now.Value - before.Count - before.Value) / now.Time.Sub(before.Time).Seconds()
	})
}

func (r *record) quantiles(prefix string, q float64, metric, by string) []line {
	return r.each(prefix, metric, by, func(before, now point) float64 {
		return quantile(q, before, now)
	})
}

// quantile is Prometheus' histogram_quantile of the values recorded between two steps.
func quantile(q float64, before, now point) float64 {
	rank := q * (now.Count - before.Count)
	seen := 0.0
	for i, n := range now.BucketCounts {
		if before.BucketCounts != nil {
			n -= before.BucketCounts[i]
		}
		if n > 0 && seen+n >= rank {
			low, high := 0.0, now.Bounds[len(now.Bounds)-1]
			if i > 0 {
				low = now.Bounds[i-1]
			}
			if i < len(now.Bounds) {
				high = now.Bounds[i]
			}
			return low + (high-low)*(rank-seen)/n
		}
		seen += n
	}
	return math.NaN()
}
