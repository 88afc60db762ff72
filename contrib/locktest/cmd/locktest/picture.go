package main

import (
	"fmt"
	"html"
	"strings"
	"time"
)

// Sizes of the picture in pixels.
const (
	pictureWidth, rowHeight = 760, 34
	pictureLeft, pictureTop = 130, 44
	pictureRight            = 24
)

// waitsPicture draws each wait after a kill as a dot, in a row for each library, as SVG. A stroke marks the
// median, and a dashed line the TTL.
func waitsPicture(all []sum) string {
	longest, ttl := time.Second, time.Duration(0)
	for _, s := range all {
		ttl = max(ttl, s.cells[0].TTL)
		if n := len(s.total.Waits); n > 0 {
			longest = max(longest, s.total.Waits[n-1])
		}
	}
	longest = max(longest, ttl).Truncate(time.Second) + time.Second
	at := func(d time.Duration) float64 {
		return pictureLeft + float64(pictureWidth-pictureLeft-pictureRight)*float64(d)/float64(longest)
	}
	bottom := pictureTop + rowHeight*len(all)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="13" role="img">`+"\n",
		pictureWidth, bottom+48, pictureWidth, bottom+48)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", pictureWidth, bottom+48)
	fmt.Fprintf(&b, `<text x="%d" y="22" font-size="15" font-weight="bold">Time from the kill of a holder until the next grant</text>`+"\n", pictureLeft)
	for d := time.Duration(0); d <= longest; d += time.Second {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%.0f s</text>`+"\n",
			at(d), pictureTop, at(d), bottom, at(d), bottom+18, d.Seconds())
	}
	fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#d1640a" stroke-dasharray="5 4"/><text x="%.1f" y="%d" text-anchor="middle" fill="#d1640a">TTL</text>`+"\n",
		at(ttl), pictureTop, at(ttl), bottom, at(ttl), bottom+36)
	for i, s := range all {
		y := pictureTop + rowHeight*i + rowHeight/2
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", pictureLeft-14, y+4, html.EscapeString(s.title))
		for _, w := range s.total.Waits {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%d" r="5" fill="#0b5fa5" fill-opacity="0.4"/>`+"\n", at(w), y)
		}
		if n := len(s.total.Waits); n > 0 {
			middle := at(s.total.Waits[min(n/2, n-1)])
			fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="black" stroke-width="2"/>`+"\n", middle, y-10, middle, y+10)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}
