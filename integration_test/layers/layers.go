package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// table has the layers of a package, top down, and the layer of each file.
type table struct {
	names []string
	of    map[string]int // by file: an index in names
}

var goFile = regexp.MustCompile("`([a-z0-9_]+\\.go)`")

// readTable reads the layers from the table of a design document whose first column is headed layer.
// Each row is a layer, with its files in the last column. Rows that do not name a file of the package
// itself, such as the rows of other packages, are left out.
func readTable(path string) (*table, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &table{of: make(map[string]int)}
	inside := false
	for line := range strings.Lines(string(text)) {
		row := strings.HasPrefix(line, "|")
		if inside && !row {
			break
		}
		if inside = inside || strings.HasPrefix(line, "| layer |"); !inside {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		files := goFile.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(files) == 0 {
			continue
		}
		for _, f := range files {
			if _, twice := t.of[f[1]]; twice {
				return nil, fmt.Errorf("%s: %s is in two layers", path, f[1])
			}
			t.of[f[1]] = len(t.names)
		}
		t.names = append(t.names, strings.TrimSpace(cells[0]))
	}
	if len(t.names) == 0 {
		return nil, fmt.Errorf("%s has no table of layers", path)
	}
	return t, nil
}

// homeless returns the files that are not in any layer.
func (t *table) homeless(g *graph) []string {
	var found []string
	for _, f := range g.files {
		if _, ok := t.of[f]; !ok && f != "doc.go" {
			found = append(found, f)
		}
	}
	return found
}

// goesUp reports whether a call goes from a layer to one above it.
func (t *table) goesUp(c call) bool { return t.of[c.from] > t.of[c.to] }
