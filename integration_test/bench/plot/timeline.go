package plot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Timeline is a diagram of what was counted in each second.
type Timeline struct {
	// Title is printed above the diagram.
	Title string

	// From and To are the seconds between which the background is grey.
	From, To int

	// Lines are the counts: the former state, and the present one.
	Lines []Counts
}

// Counts is a line of a Timeline.
type Counts struct {
	// Name is the line's name in the legend.
	Name string

	// Values are those of each second.
	Values []float64
}

// Sizes in pixels: of a timeline, of the margins around its area, and of the legend above all.
const (
	timeWidth, timeHeight                    = 440, 168
	timeLeft, timeRight, timeTop, timeBottom = 56, 20, 30, 26
	timeLegend                               = 44
	abreast                                  = 2 // timelines side by side
)

// WriteTimelines draws timelines, two side by side. Each has a vertical axis of its own, from 0. The
// text explains the axes and the grey background. It returns w's error.
func WriteTimelines(w io.Writer, text string, all []Timeline) error {
	var b strings.Builder
	rows := (len(all) + abreast - 1) / abreast
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="12" role="img">`+"\n",
		abreast*timeWidth, timeLegend+rows*timeHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", abreast*timeWidth, timeLegend+rows*timeHeight)
	label(&b, timeLeft, 17, "start", "", text)
	names := 0
	for _, t := range all {
		for ; names < len(t.Lines); names++ {
			x := float64(timeLeft + 110*names)
			fmt.Fprintf(&b, `<path d="M%.0f 32h22"%s/>`+"\n", x, stroke(names))
			label(&b, x+28, 36, "start", "", t.Lines[names].Name)
		}
	}
	for i, t := range all {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`+"\n", i%abreast*timeWidth, timeLegend+i/abreast*timeHeight)
		t.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func (t Timeline) draw(b *strings.Builder) {
	seconds, most := t.To, 1.
	for _, l := range t.Lines {
		seconds = max(seconds, len(l.Values))
		for _, v := range l.Values {
			most = max(most, v)
		}
	}
	most = roundUp(most)
	x := func(second int) float64 {
		return timeLeft + float64(second)/float64(seconds)*(timeWidth-timeLeft-timeRight)
	}
	y := func(v float64) float64 { return timeHeight - timeBottom - v/most*(timeHeight-timeTop-timeBottom) }
	fmt.Fprintf(b, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="#eee"/>`+"\n", x(t.From), timeTop, x(t.To)-x(t.From), timeHeight-timeTop-timeBottom)
	label(b, timeLeft, 20, "start", ` font-weight="bold"`, t.Title)
	for _, v := range []float64{0, most / 2, most} {
		fmt.Fprintf(b, `<path d="M%d %.1fH%d" stroke="#ddd"/>`+"\n", timeLeft, y(v), timeWidth-timeRight)
		label(b, timeLeft-6, y(v)+4, "end", "", fmt.Sprintf("%g", v))
	}
	for s := 0; s <= seconds; s += max(1, seconds/5) {
		label(b, x(s), timeHeight-timeBottom+16, "middle", "", fmt.Sprintf("%d s", s))
	}
	for i, l := range t.Lines {
		var path strings.Builder
		for s, v := range l.Values {
			command := "L"
			if s == 0 {
				command = "M"
			}
			fmt.Fprintf(&path, "%s%.1f %.1fH%.1f", command, x(s), y(v), x(s+1))
		}
		if path.Len() > 0 {
			fmt.Fprintf(b, `<path d="%s"%s/>`+"\n", path.String(), stroke(i))
		}
	}
}

// stroke returns the attributes of the line with index i. In print, lines differ by their dashes.
func stroke(i int) string {
	colour, dashes := colours[0], ""
	if i%2 == 0 { // the former state
		colour, dashes = colours[1], ` stroke-dasharray="7 3"`
	}
	return fmt.Sprintf(` fill="none" stroke="%s" stroke-width="2"%s`, colour, dashes)
}

// roundUp returns the next of 1, 2, 4, 6 and 8 times a power of ten, so that half of it is a short number.
func roundUp(v float64) float64 {
	power := math.Pow10(int(math.Floor(math.Log10(v))))
	for _, times := range []float64{1, 2, 4, 6, 8} {
		if v <= times*power {
			return times * power
		}
	}
	return 10 * power
}

// label writes text at a position. more has further attributes.
func label(b *strings.Builder, x, y float64, anchor, more, text string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s"%s>%s</text>`+"\n", x, y, anchor, more, html.EscapeString(text))
}
