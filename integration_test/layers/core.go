package main

import (
	"fmt"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// core has the folders of the core's packages, below the folder of the public one.
var core = []string{".", "internal/deadlock", "internal/local", "internal/place", "internal/session", "internal/queue", "internal/lease"}

// words has the folders whose types are named once: the core, and what every package of it speaks of.
var words = append(slices.Clone(core), "internal/errs", "internal/hook", "driver")

// walked returns the folders, below the module's, whose functions a reader of an Acquire goes through.
func walked() (folders []string) {
	for _, folder := range words {
		if folder != "driver" { // a caller reads its contract
			folders = append(folders, filepath.Join("zklock", folder))
		}
	}
	return folders
}

// reportCore prints what a reader has to keep in mind of each package of the core: lines, types,
// and the largest circles of files and of types. Then it prints the fields of session.Session that other
// packages can reach.
func reportCore(w io.Writer, dir string) error {
	fmt.Fprintf(w, "\n%-17s %5s %5s %5s  %s  %s\n", "package", "lines", "files", "types", "circle: files", "types")
	total := 0
	var open []string
	for _, folder := range core {
		at := filepath.Join(dir, folder)
		g, err := draw(at)
		if err != nil {
			return err
		}
		n, err := countLines(at)
		if err != nil {
			return err
		}
		total += n
		fmt.Fprintf(w, "%-17s %5d %5d %5d  %13d  %5d\n", folder, n, len(g.files), g.types, len(circleOf(g.needs)), len(g.circle()))
		if folder == "internal/session" {
			open = g.open
		}
	}
	fmt.Fprintf(w, "%-17s %5d\n\n", "together", total)
	fmt.Fprintf(w, "%d exported fields of session.Session: %s\n", len(open), strings.Join(open, " "))
	return nil
}

// countLines counts the lines of a package's files without its tests, on all systems.
func countLines(dir string) (n int, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			return 0, err
		}
		n += strings.Count(string(text), "\n")
	}
	return n, err
}

// openFields returns the exported fields of the package's type Session, with those that it has by its
// embedded fields.
func openFields(pkg *types.Package) (open []string) {
	o := pkg.Scope().Lookup("Session")
	if o == nil {
		return nil
	}
	var visit func(t types.Type)
	visit = func(t types.Type) {
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		s, ok := t.Underlying().(*types.Struct)
		if !ok {
			return
		}
		for f := range s.Fields() {
			if f.Embedded() && !f.Exported() {
				visit(f.Type())
			} else if f.Exported() {
				open = append(open, f.Name())
			}
		}
	}
	visit(o.Type())
	return open
}

// circleOf returns the largest set of names that all lead to each other.
func circleOf(next map[string]map[string]struct{}) (largest []string) {
	reaches := make(map[string]map[string]bool, len(next))
	for from := range next {
		found := make(map[string]bool)
		for todo := []string{from}; len(todo) > 0; {
			at := todo[len(todo)-1]
			todo = todo[:len(todo)-1]
			for other := range next[at] {
				if !found[other] {
					found[other] = true
					todo = append(todo, other)
				}
			}
		}
		reaches[from] = found
	}
	for _, from := range slices.Sorted(maps.Keys(reaches)) {
		var same []string
		for other := range reaches[from] {
			if reaches[other][from] {
				same = append(same, other)
			}
		}
		if len(same) > len(largest) {
			largest = same
		}
	}
	slices.Sort(largest)
	return largest
}
