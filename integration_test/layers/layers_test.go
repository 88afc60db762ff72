package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the core may have at most. These numbers get smaller; who makes one smaller
// writes the new one here.
const (
	maxUp      = 7  // calls that go up a layer
	maxCircle  = 23 // types that know each other in a circle
	maxMethods = 30 // methods of one type
	maxFiles   = 8  // files of one type
)

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
		t.Errorf("%s is in no layer of zklock/DESIGN.md", f)
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
	_, size := g.widest()
	for _, n := range []struct {
		what       string
		have, most int
	}{
		{"calls go up a layer", up, maxUp},
		{"types know each other in the largest circle", len(g.circle()), maxCircle},
		{"methods has the widest type", size.methods, maxMethods},
		{"files is the widest type in", len(size.files), maxFiles},
	} {
		if n.have > n.most {
			t.Errorf("%d %s, at most %d may", n.have, n.what, n.most)
		}
	}
	if t.Failed() {
		t.Log("go run ./integration_test/layers lists them")
	}
}

// What package session may have at most.
const (
	maxSessionCircle  = 3
	maxSessionMethods = 41
	maxSessionFiles   = 7
)

func TestSessionStaysSmall(t *testing.T) {
	g, err := draw("../../zklock/internal/session")
	if err != nil {
		t.Fatal(err)
	}
	_, size := g.widest()
	if circle := g.circle(); len(circle) > maxSessionCircle || size.methods > maxSessionMethods || len(size.files) > maxSessionFiles {
		t.Errorf("%d types in the largest circle, %d methods in %d files of the widest type; at most %d, %d and %d may",
			len(circle), size.methods, len(size.files), maxSessionCircle, maxSessionMethods, maxSessionFiles)
	}
}

// A package of two layers, with a call that goes up, one that goes down, and two types
// in a circle.
func TestDrawSeesCallsAndCircles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/drawn\n\ngo 1.26\n",
		"DESIGN.md": "| layer | files |\n|---|---|\n| high | `high.go` |\n| low | `low.go` |\n\n| other | `high.go` |\n",
		"high.go":   "package drawn\n\ntype High struct{ low *Low }\n\nfunc (h *High) Call() { h.low.Answer() }\nfunc (h *High) Told() {}\n",
		"low.go":    "package drawn\n\ntype Low struct{ high *High }\n\nfunc (l *Low) Answer() { l.high.Told(); l.high.Told() }\n",
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
		t.Errorf("in no layer: %v", got)
	}
	if got := g.circle(); !slices.Equal(got, []string{"High", "Low"}) {
		t.Errorf("in the circle: %v", got)
	}
	var text strings.Builder
	report(&text, g, layers, false)
	for _, want := range []string{"UP  low", "Low.Answer -> High.Told", "2 calls between files, 1 of them up a layer", "the widest type is High: 2 methods in 1 files"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, &text)
		}
	}
	if strings.Contains(text.String(), "High.Call") {
		t.Errorf("a call that goes down is listed:\n%s", &text)
	}
}
