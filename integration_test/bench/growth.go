package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/integration_test/bench/plot"
	"github.com/zklock/go-zklock/integration_test/bench/worker"
)

// sizes are the numbers of goroutines in the measurements of growth.
var sizes = []int{1, 10, 100, 1000, 10000}

// growth measures one session with growing numbers of names, with a goroutine for each
// name, and with growing numbers of waiters for one name. It writes a table and a picture.
func (b *runner) growth(ctx context.Context, pattern *regexp.Regexp, picture, markdown string, out io.Writer) error {
	before, length := processorTime(), b.length
	defer func() { b.length = length }()
	var panels []plot.Panel
	var lines [][]string
	for _, g := range []struct {
		names, title string
		limit        map[string]int
	}{
		{worker.Own, "names", map[string]int{zkLock: 10000, floor: 10000}},
		// Each cycle of zk.Lock lists all waiters.
		{worker.One, "waiters on one name", map[string]int{zkLock: 1000}},
	} {
		panel := plot.Panel{Title: g.title, X: g.title, Y: "cycles/s"}
		series := make(map[string]*plot.Series)
		for i, r := range growing(g.names, sizes, g.limit) {
			if !pattern.MatchString(r.name) {
				continue
			}
			b.say("%s %s ...", r.name, g.title)
			b.length = stretched(length, sizes[i])
			res, err := b.run(ctx, r, append([]string{ours}, r.who...))
			if err != nil {
				return fmt.Errorf("%s %s: %w", r.name, g.title, err)
			}
			line := []string{strconv.Itoa(sizes[i]) + " " + g.title}
			for _, who := range []string{ours, zkLock, floor} {
				if len(res.Turns[who]) == 0 {
					line = append(line, "")
					continue
				}
				v := res.median(who, "rate")
				if v == 0 {
					line = append(line, "0")
					continue // a logarithmic axis has no 0
				}
				line = append(line, fmt.Sprintf("%.0f", v))
				if series[who] == nil {
					series[who] = &plot.Series{Name: who}
				}
				series[who].Points = append(series[who].Points, plot.Point{X: float64(sizes[i]), Y: v})
			}
			lines = append(lines, line)
		}
		for _, who := range []string{ours, zkLock, floor} {
			if series[who] != nil {
				panel.Series = append(panel.Series, *series[who])
			}
		}
		panels = append(panels, panel)
	}
	b.length = length
	head := append(machine(b, nil, 1), b.method(1))
	if took := processorTime().since(before); took != "" {
		head = append(head, took)
	}
	text := "- " + strings.Join(head, "\n- ") + "\n\n" + table{[]string{"cycles/s, one session", ours, zkLock, floor}, lines}.markdown()
	show := func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	if err := errors.Join(show(out), write(markdown, out, show)); err != nil {
		return err
	}
	return write(picture, out, func(w io.Writer) error { return plot.Write(w, panels) })
}

// stretched returns the length of a turn with n goroutines. It is long enough for more
// than one cycle of each goroutine.
func stretched(length time.Duration, n int) time.Duration {
	switch {
	case n >= 10000:
		return 4 * length
	case n >= 1000:
		return 2 * length
	}
	return length
}
