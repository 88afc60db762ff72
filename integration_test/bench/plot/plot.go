// Package plot draws lines as SVG: over two logarithmic axes, for figures that grow by powers
// of ten in both directions, and over time.
package plot

import (
	"fmt"
	"io"
	"math"
	"strings"
)

// Point is one measurement.
type Point struct {
	// X and Y must be greater than 0.
	X, Y float64
}

// Series is a line.
type Series struct {
	// Name is the line's name in the legend.
	Name string

	// Points are in the order of X.
	Points []Point
}

// Panel is one diagram.
type Panel struct {
	// Title is printed above the diagram. X and Y are the names of the axes.
	Title, X, Y string

	// Series are its lines.
	Series []Series
}

// Sizes in pixels: of a panel, and of the margins around its area.
const (
	width, height            = 440, 330
	left, right, top, bottom = 64, 28, 64, 48
)

// legend is the vertical position of the lines' names, between the title and the area. Names of more than perRow lines
// have two rows: the first and the second.
const (
	legend        = 46
	first, second = 38, 55
	perRow        = 3
)

// colours can be distinguished also by readers with red-green colour blindness. In print,
// the lines differ by their marks.
var colours = []string{"#0b5fa5", "#d1640a", "#6b6b6b", "#7b3f9d", "#1b9e77", "#a6761d"}

// Write draws panels side by side. All have the same vertical axis. It returns w's error.
func Write(w io.Writer, panels []Panel) error {
	var b strings.Builder
	low, high := bounds(panels, func(p Point) float64 { return p.Y })
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" role="img">`+"\n",
		width*len(panels), height, width*len(panels), height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width*len(panels), height)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(%d 0)">`+"\n", i*width)
		p.draw(&b, axis{low, high, height - bottom, top})
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// axis maps powers of ten from low to high onto pixels.
type axis struct {
	low, high int // exponents
	from, to  float64
}

func (a axis) at(v float64) float64 {
	return a.from + (math.Log10(v)-float64(a.low))/float64(a.high-a.low)*(a.to-a.from)
}

// bounds returns the exponents of the powers of ten around all points.
func bounds(panels []Panel, of func(Point) float64) (low, high int) {
	least, most := math.Inf(1), math.Inf(-1)
	for _, p := range panels {
		for _, s := range p.Series {
			for _, pt := range s.Points {
				least, most = min(least, of(pt)), max(most, of(pt))
			}
		}
	}
	if least > most || least <= 0 {
		return 0, 1
	}
	low, high = int(math.Floor(math.Log10(least))), int(math.Ceil(math.Log10(most)))
	if low == high {
		high++
	}
	return low, high
}

func (p Panel) draw(b *strings.Builder, y axis) {
	low, high := bounds([]Panel{p}, func(pt Point) float64 { return pt.X })
	x := axis{low, high, left, width - right}
	text := func(x, y float64, anchor, more, s string) { label(b, x, y, anchor, more, s) }
	line := func(x1, y1, x2, y2 float64) {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", x1, y1, x2, y2)
	}
	text((left+width-right)/2, 22, "middle", ` font-size="14" font-weight="bold"`, p.Title)
	for e := y.low; e <= y.high; e++ {
		v := y.at(math.Pow10(e))
		line(left, v, width-right, v)
		text(left-8, v+4, "end", "", number(e))
	}
	for e := x.low; e <= x.high; e++ {
		v := x.at(math.Pow10(e))
		line(v, top, v, height-bottom)
		text(v, height-bottom+18, "middle", "", number(e))
	}
	text((left+width-right)/2, height-10, "middle", "", p.X)
	text(0, 0, "middle", fmt.Sprintf(` transform="translate(14 %d) rotate(-90)"`, (top+height-bottom)/2), p.Y)
	for i, s := range p.Series {
		colour := colours[i%len(colours)]
		var path []string
		for _, pt := range s.Points {
			path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(pt.X), y.at(pt.Y)))
		}
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(path, " "), colour)
		for _, pt := range s.Points {
			fmt.Fprintln(b, mark(i, x.at(pt.X), y.at(pt.Y), colour))
		}
		at, height := float64(left+8+110*i), float64(legend)
		if len(p.Series) > perRow {
			at, height = float64(left+122*(i%perRow)), first
			if i >= perRow {
				height = second
			}
		}
		fmt.Fprintln(b, mark(i, at, height-4, colour))
		text(at+10, height, "start", "", s.Name)
	}
}

// mark draws a point of the line with index i.
func mark(i int, x, y float64, colour string) string {
	switch i % 3 {
	case 0:
		return fmt.Sprintf(`<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`, x, y, colour)
	case 1:
		return fmt.Sprintf(`<rect x="%.1f" y="%.1f" width="7" height="7" fill="%s"/>`, x-3.5, y-3.5, colour)
	}
	return fmt.Sprintf(`<path d="M%.1f %.1fl4.5 8h-9z" fill="%s"/>`, x, y-5, colour)
}

// number formats a power of ten, with commas between the thousands.
func number(exponent int) string {
	if exponent < 0 {
		return fmt.Sprintf("%g", math.Pow10(exponent))
	}
	digits := fmt.Sprintf("%.0f", math.Pow10(exponent))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
