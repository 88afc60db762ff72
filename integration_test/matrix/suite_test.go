package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// TestSuitesNameTestsThatExist: each test that a suite names exists. This notices a renamed test in
// every CI run; not every CI run has the whole matrix.
func TestSuitesNameTestsThatExist(t *testing.T) {
	files, err := filepath.Glob("../*_test.go")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	exist := make(map[string]bool)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{$`).FindAllSubmatch(text, -1) {
			exist[string(m[1])] = true
		}
	}
	for _, s := range suites {
		for _, name := range s.tests {
			if !exist[name] {
				t.Errorf("the suite %s has %s, which is not a test of integration_test", s.name, name)
			}
		}
	}
}

func TestPick(t *testing.T) {
	some, tests, err := choice{lines: ".", suites: "."}.pick(1)
	if err != nil || len(some) != len(lines) || len(tests) != len(suites) {
		t.Errorf("all: %d lines, %d suites, %v", len(some), len(tests), err)
	}
	some, tests, err = choice{lines: ".", suites: ".", rotate: true}.pick(1)
	if err != nil || len(some) != 2 || len(tests) == 0 || len(tests) >= len(suites) {
		t.Errorf("rotation: %d lines, %d suites, %v", len(some), len(tests), err)
	}
	some, _, err = choice{lines: ".", suites: ".", time: time.Minute}.pick(2)
	if err != nil || len(some) != len(lines) || some[0].name != lines[2].name {
		t.Errorf("for a minute on day 2: %v, %v", some, err)
	}
	if some, _, err = (choice{lines: `^3\.9$`, suites: "."}).pick(1); err != nil || len(some) != 1 {
		t.Errorf("3.9: %v, %v", some, err)
	}
	for _, wrong := range []choice{{lines: "4", suites: "."}, {lines: "(", suites: "."}, {lines: ".", suites: "("}, {lines: ".", suites: "none"}} {
		if _, _, err := wrong.pick(1); err == nil {
			t.Errorf("%+v: no error", wrong)
		}
	}
	// The first choices are not changed by later ones.
	if lines[0].name != "3.5" || suites[0].name != "conformance" {
		t.Errorf("the lists have changed: %v, %v", lines, suites)
	}
}
