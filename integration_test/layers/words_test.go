package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A word is one type: the core has no second type of a name, other than the face of one.
func TestCoreHasOneTypeOfAName(t *testing.T) {
	found, err := rivals("../../zklock", words)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Errorf("%s: the name of a type occurs once, or once more, exported, behind an exported one of a public package: rename one of them", f)
	}
}

// The face of one type may have its name. That of two may not, nor may a private type of a public package.
func TestRivalsAreSeen(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":           "module example.com/words\n\ngo 1.26\n",
		"words.go":         "package words\n\ntype (\n\tFace int\n\tDouble int\n\tpart int\n)\n\ntype Own int\n\ntype own int\n\nvar _ = own(0)\n",
		"driver/driver.go": "package driver\n\ntype Face int\n\ntype Word int\n",
		"one/one.go":       "package one\n\ntype Face int\n\ntype Double int\n\ntype Part int\n\ntype Alone int\n",
		"two/two.go":       "package two\n\ntype double int\n\ntype word int\n\nvar (\n\t_ double\n\t_ word\n)\n",
		"three/three.go":   "package three\n\ntype Third int\n\ntype Double[T any] struct{ next *third }\n\ntype third = int\n",
		"three/x_test.go":  "package three\n\ntype Alone int\n",
	} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := rivals(dir, []string{".", "driver", "one", "two", "three"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"double: words.Double (words.go:5), one.Double (one.go:5), two.double (two.go:3), three.Double (three.go:5)",
		"own: words.Own (words.go:9), words.own (words.go:11)",
		"part: words.part (words.go:6), one.Part (one.go:7)",
		"third: three.Third (three.go:3), three.third (three.go:7)",
		"word: driver.Word (driver.go:5), two.word (two.go:5)",
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}
