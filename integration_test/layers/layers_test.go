package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// maxUp is the number of calls inside the core that may go up a layer. A change that makes
// them fewer lowers it.
const maxUp = 0

func TestCoreKeepsItsLayers(t *testing.T) {
	const dir = "../../zklock"
	layers, err := readTable(filepath.Join(dir, "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := draw(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range layers.homeless(g) {
		t.Errorf("%s is missing in the table of layers in zklock/DESIGN.md", f)
	}
	for f := range layers.of {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Errorf("zklock/DESIGN.md has a layer for %s: %v", f, err)
		}
	}
	up := 0
	for c, what := range g.calls {
		if layers.goesUp(c) {
			up += len(what)
		}
	}
	if up > maxUp {
		t.Errorf("%d calls go up a layer, at most %d are allowed: go run ./integration_test/layers lists them", up, maxUp)
	}
}

// Each package has a maximum of types that refer to each other in a circle, and one of files.
// A change that makes a circle smaller lowers the number here. A session offers operations: no package
// but session reaches one of its fields.
func TestCirclesStaySmall(t *testing.T) {
	for dir, most := range map[string]struct{ types, files int }{
		"../../zklock":                   {9, 5},
		"../../zklock/internal/deadlock": {5, 2},
		"../../zklock/internal/local":    {5, 3},
		"../../zklock/internal/place":    {7, 7},
		"../../zklock/internal/session":  {2, 3},
		"../../zklock/internal/queue":    {3, 2},
	} {
		g, err := draw(dir)
		if err != nil {
			t.Fatal(err)
		}
		if circle := g.circle(); len(circle) > most.types {
			t.Errorf("%s: %d types in the largest circle (%s), at most %d are allowed", dir, len(circle), strings.Join(circle, " "), most.types)
		}
		if circle := circleOf(g.needs); len(circle) > most.files {
			t.Errorf("%s: %d files in the largest circle (%s), at most %d are allowed", dir, len(circle), strings.Join(circle, " "), most.files)
		}
		if strings.HasSuffix(dir, "/session") && len(g.open) > 0 {
			t.Errorf("%s: the type Session has the exported fields %v, want none", dir, g.open)
		}
	}
}

// A package of two layers, with a call that goes up, one that goes down, and two types
// in a circle.
func TestDrawSeesCallsAndCircles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/drawn\n\ngo 1.26\n",
		"DESIGN.md": "| layer | files |\n|---|---|\n| high | `high.go` |\n| low | `low.go` |\n\n| other | `high.go` |\n",
		"high.go":   "package drawn\n\ntype High struct{ low *Low }\n\nfunc (h *High) Call() { h.low.Answer() }\nfunc (h *High) Hear() {}\n",
		"low.go":    "package drawn\n\ntype Low struct{ high *High }\n\nfunc (l *Low) Answer() { l.high.Hear(); l.high.Hear() }\n",
		"free.go":   "package drawn\n\ntype Free struct{ high High }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	layers, err := readTable(filepath.Join(dir, "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	g, err := draw(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := layers.homeless(g); !slices.Equal(got, []string{"free.go"}) {
		t.Errorf("files without a layer: %v", got)
	}
	if got := g.circle(); !slices.Equal(got, []string{"High", "Low"}) {
		t.Errorf("in the circle: %v", got)
	}
	var text strings.Builder
	report(&text, g, layers, false)
	for _, want := range []string{"UP  low", "Low.Answer -> High.Hear", "2 calls between files, 1 of them up a layer", "2 files need each other in the largest circle: high.go low.go"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not contain %q:\n%s", want, &text)
		}
	}
	if strings.Contains(text.String(), "High.Call") {
		t.Errorf("a call that goes down is listed:\n%s", &text)
	}
}
