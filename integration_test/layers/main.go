package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("layers: ")
	dir := flag.String("dir", "zklock", "the package's folder")
	design := flag.String("design", "", "the document with the table of layers (default: DESIGN.md in the package's folder)")
	calls := flag.Bool("calls", false, "list every call from file to file")
	walk := flag.Bool("walk", false, "record an Acquire and a Release, and print what a reader of their calls goes through; with -calls the calls, too")
	flag.Parse()
	if *walk {
		if err := reportWalk(os.Stdout, filepath.Dir(*dir), *calls); err != nil {
			log.Fatal(err)
		}
		return
	}
	if *design == "" {
		*design = filepath.Join(*dir, "DESIGN.md")
	}
	t, err := readTable(*design)
	if err != nil {
		log.Fatal(err)
	}
	g, err := draw(*dir)
	if err != nil {
		log.Fatal(err)
	}
	report(os.Stdout, g, t, *calls)
	if *dir == "zklock" {
		if err := reportCore(os.Stdout, *dir); err != nil {
			log.Fatal(err)
		}
	}
}

// report prints the numbers of a graph, and its calls with their layers: only those that go up
// a layer, or all of them.
func report(w io.Writer, g *graph, t *table, all bool) {
	total, up := 0, 0
	for _, c := range slices.SortedFunc(maps.Keys(g.calls), func(a, b call) int { return strings.Compare(a.from+" "+a.to, b.from+" "+b.to) }) {
		for _, what := range slices.Sorted(maps.Keys(g.calls[c])) {
			total++
			mark := "  "
			if t.goesUp(c) {
				up++
				mark = "UP"
			} else if !all {
				continue
			}
			fmt.Fprintf(w, "%s  %-10s %-14s %-10s %-14s  %s\n", mark, t.names[t.of[c.from]], c.from, t.names[t.of[c.to]], c.to, what)
		}
	}
	circle, files := g.circle(), circleOf(g.needs)
	fmt.Fprintf(w, "\n%d files in %d layers: %s\n", len(g.files), len(t.names), strings.Join(t.names, ", "))
	fmt.Fprintf(w, "%d calls between files, %d of them up a layer\n", total, up)
	fmt.Fprintf(w, "%d files need each other in the largest circle: %s\n", len(files), strings.Join(files, " "))
	fmt.Fprintf(w, "%d types know each other in the largest circle: %s\n", len(circle), strings.Join(circle, " "))
}
