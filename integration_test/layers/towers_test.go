package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// No field or method of the core is reached through a tower of embedded fields.
func TestCoreHasNoTowers(t *testing.T) {
	for _, folder := range core {
		found, err := towers(filepath.Join("../../zklock", folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			t.Errorf("%s: %s, at most 1 is allowed: give a field a name", folder, f)
		}
	}
}

// A tower is seen whether its floors are named or not. A field with a name ends it.
func TestTowersAreSeen(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/tower\n\ngo 1.26\n",
		"tower.go": `package tower

type Low struct{ Field int }

func (*Low) Call() {}

type Mid struct{ Low }

type High struct{ Mid }

type House struct{ Ground Mid }

func use(h *High, o *House) {
	h.Call()
	h.Mid.Low.Field++
	h.Mid.Call()
	h.Low.Call()
	_ = &h.Low
	_ = &h.Mid
	o.Ground.Call()
	o.Ground.Field++
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := towers(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"tower.go:14: h.Call is 2 embedded fields away",
		"tower.go:15: h.Mid.Low.Field is 2 embedded fields away",
		"tower.go:16: h.Mid.Call is 2 embedded fields away",
		"tower.go:17: h.Low.Call is 2 embedded fields away",
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}
