package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestGoodputIsAShareOfTheCalmSeconds: the first second before the overload does not count, and only
// the first one after it does.
func TestGoodputIsAShareOfTheCalmSeconds(t *testing.T) {
	f := figures{"grants000": 7, "grants001": 40, "grants002": 60, "grants003": 25, "grants004": 5, "grants005": 10, "grants006": 20, "grants007": 30, "grants008": 50, "failed": 3}
	got := goodput(f.grants(), [3]int{3, 4, 2}, 500*time.Millisecond)
	if want := (figures{"total": 247, "calm": 100, "lowest": .1, "middle": .3, "after": .6}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// Without a grant before the overload there are no shares: a target does not take them for met.
	got = goodput([]float64{7, 0, 0, 5, 5, 5}, [3]int{3, 2, 1}, time.Second)
	if want := (figures{"total": 22, "calm": 0}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestOverloadsHaveATableOfTheirOwn: next to that of the cycles.
func TestOverloadsHaveATableOfTheirOwn(t *testing.T) {
	r := overloads(usual)[0]
	res := result{Row: r.name, row: r, Who: []string{defaults, etcd}, Turns: map[string][]figures{
		defaults: {
			{"calm": 50, "lowest": .5, "middle": .9, "after": 1}, {"calm": 40, "lowest": .6, "middle": 1.1, "after": 0},
			{"calm": 45, "lowest": .9, "middle": 1, "after": .25},
		},
		etcd: {{"calm": 0}},
	}}
	rep := report{Results: []result{{Row: "w", Who: []string{ours}}, res}}
	tables := rep.figures()
	if len(tables) != 2 || !slices.Equal(tables[0].head, columns) || len(tables[0].lines) != 1 {
		t.Fatalf("%v, want a table of one workload, and one of overloads", tables)
	}
	if want := [][]string{
		{"overload: mutex, 100 callers, waits of 20ms", defaults, "45", "60%", "100%", "25%"},
		{"", etcd, "0", "", "", ""},
	}; !reflect.DeepEqual(tables[1].lines, want) {
		t.Errorf("%q, want %q", tables[1].lines, want)
	}
	if v := verdicts([]result{res}); len(v) != 1 || v[0].Measured != .6 || !v[0].OK {
		t.Errorf("%+v, want one met target, about the median of the lowest seconds", v)
	}
}

// TestRecordsAreReplacedAndDrawn: what is written is read again, and each second of it is drawn.
func TestRecordsAreReplacedAndDrawn(t *testing.T) {
	title := strings.TrimPrefix(recorded()[0].name, rowOverload)
	records := []record{
		{title, "before", "2026-11-29", [3]int{1, 2, 1}, []float64{50, 1, 0, 0}},
		{title, "after", "2026-11-30", [3]int{1, 2, 1}, []float64{50, 40, 45, 50}},
	}
	var b bytes.Buffer
	if err := writeRecords(&b, records); err != nil {
		t.Fatal(err)
	}
	if got, err := readRecords(b.Bytes()); err != nil || !reflect.DeepEqual(got, records) {
		t.Errorf("%v (%v), want %v", got, err, records)
	}
	b.Reset()
	if err := drawRecords(&b, records); err != nil {
		t.Fatal(err)
	}
	steps := 0
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "path" {
			for _, a := range e.Attr {
				if a.Name.Local == "d" {
					steps += strings.Count(a.Value, "L")
				}
			}
		}
	}
	if steps != 6 { // from each of four seconds to the next, of two lines
		t.Errorf("%d steps in the picture, want 6", steps)
	}
}

// TestTimelineIsDrawnFromItsRecords: the picture in the documentation is that of the records next to it.
func TestTimelineIsDrawnFromItsRecords(t *testing.T) {
	data, err := os.ReadFile("overload.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	records, err := readRecords(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recorded() {
		if !slices.ContainsFunc(records, func(rec record) bool { return rowOverload+rec.Load == r.name }) {
			t.Errorf("no record of %q", r.name)
		}
	}
	picture, err := os.ReadFile("overload.svg")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := drawRecords(&b, records); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), picture) {
		t.Error("overload.svg is not the picture of overload.ndjson: make bench-timeline CORE= draws it")
	}
}
