package main

import (
	"bytes"
	"fmt"
	"html"
	"time"
)

// Measures of the picture of traces, in pixels.
const (
	width   = 1000
	margin  = 20
	label   = 300 // the names, left of the bars
	row     = 26
	heading = 34
)

var colours = map[string]string{"zklock.acquire": "#3b82f6", "zklock.wait": "#f59e0b", "zklock.hold": "#22c55e", "zklock.release": "#8b5cf6"}

// section is a trace with its title.
type section struct {
	title string
	spans []*span
}

// drawWait draws a request that waited, the one that it waited for, and the link between them.
func (r *record) drawWait(waiter, holder *span) []byte {
	return drawTraces([]section{
		{fmt.Sprintf("The slow request, process %s, trace %s", waiter.service, waiter.SpanContext.TraceID), r.trace(waiter)},
		{fmt.Sprintf("The request it waited for, process %s, trace %s", holder.service, holder.SpanContext.TraceID), r.trace(holder)},
	}, waiter, []*span{holder}, fmt.Sprintf("the link of zklock.wait: from span %s to span %s", waiter.SpanContext.SpanID, holder.SpanContext.SpanID))
}

// drawDeadlock draws a request whose wait a deadlock has ended, and those that it was in a circle with.
func (r *record) drawDeadlock(failed *span, others []*span) []byte {
	parts := []section{{fmt.Sprintf("The request that failed, process %s, trace %s", failed.service, failed.SpanContext.TraceID), r.trace(failed)}}
	drawn := map[string]bool{failed.SpanContext.TraceID: true}
	for _, s := range others {
		if id := s.SpanContext.TraceID; !drawn[id] {
			drawn[id] = true
			parts = append(parts, section{fmt.Sprintf("The request that went on, process %s, trace %s", s.service, id), r.trace(s)})
		}
	}
	return drawTraces(parts, failed, others, failed.Status.Description)
}

// drawTraces draws traces on one axis of time, the links between two spans of them, and a line of text.
func drawTraces(parts []section, linked *span, links []*span, text string) []byte {
	var all []*span
	for _, p := range parts {
		all = append(all, p.spans...)
	}
	from, to := all[0].StartTime, all[0].EndTime
	for _, s := range all {
		if s.StartTime.Before(from) {
			from = s.StartTime
		}
		if s.EndTime.After(to) {
			to = s.EndTime
		}
	}
	scale := axisTo(to.Sub(from).Seconds(), "s")
	position := func(seconds float64) float64 { return label + seconds/scale.end()*(width-label-margin) }
	x := func(t time.Time) float64 { return position(t.Sub(from).Seconds()) }
	height := margin + (len(parts)+1)*heading + row*len(all) + margin
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13">`, width, height)
	fmt.Fprintf(&b, `<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="#dc2626"/></marker></defs>`)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#ffffff"/>`, width, height)
	for i := range scale.ticks + 1 {
		at := position(scale.step * float64(i))
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#e5e7eb"/>`, at, margin+4, height-heading)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle" font-size="11" fill="#6b7280">%s</text>`, min(at, width-margin), margin, scale.label(i))
	}
	y := margin
	middle := make(map[*span]int)
	for _, p := range parts {
		y += heading
		fmt.Fprintf(&b, `<text x="%d" y="%d" font-weight="bold" fill="#111827">%s</text>`, margin, y-10, html.EscapeString(p.title))
		depth := make(map[string]int)
		for _, s := range p.spans {
			if d, ok := depth[s.Parent.SpanID]; ok {
				depth[s.SpanContext.SpanID] = d + 1
			} else {
				depth[s.SpanContext.SpanID] = 0
			}
			colour := colours[s.Name]
			if colour == "" {
				colour = "#9ca3af"
			}
			at := x(s.StartTime)
			fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#374151">%s</text>`, margin+14*depth[s.SpanContext.SpanID], y+row-9, html.EscapeString(s.Name))
			fmt.Fprintf(&b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" rx="2" fill="%s"/>`, at, y+4, max(x(s.EndTime)-at, 2), row-8, colour)
			fmt.Fprintf(&b, `<text x="%.1f" y="%d" font-size="11" fill="#111827">%s</text>`, min(at+4, width-90), y+row-9, duration(s.EndTime.Sub(s.StartTime)))
			middle[s] = y + row/2
			y += row
		}
	}
	for _, s := range links {
		fmt.Fprintf(&b, `<path d="M%.1f %dC%.1f %d %.1f %d %.1f %d" fill="none" stroke="#dc2626" stroke-width="2" marker-end="url(#tip)"/>`,
			x(linked.StartTime)+2, middle[linked]+9, x(linked.StartTime)-60, middle[linked]+60, x(s.StartTime)+80, middle[s]-60, x(s.StartTime)+2, middle[s]-9)
	}
	y += heading
	fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#dc2626"%s>%s</text></svg>`, margin, y-10, fitting(text), html.EscapeString(text))
	b.WriteByte('\n')
	return b.Bytes()
}

// fitting returns the attribute that squeezes a text into the picture, if it is long.
func fitting(text string) string {
	if len(text) < 140 {
		return ""
	}
	return fmt.Sprintf(` textLength="%d" lengthAdjust="spacingAndGlyphs"`, width-2*margin)
}

// duration writes a time with three digits.
func duration(d time.Duration) string { return seconds(d.Seconds(), d.Seconds()) }
