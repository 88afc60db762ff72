package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each step of the argument for exclusion, in zklock/DESIGN.md, names functions that keep it, and for each of them mutants that
// change it.
func TestDesignArgumentHasMutants(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "zklock", "DESIGN.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, argument, _ := strings.Cut(string(text), "\n## Why there is at most one holder\n")
	argument, _, _ = strings.Cut(argument, "\n## ")
	changed := make(map[string][]string) // the functions that each mutant changes
	for _, m := range mutants(t) {
		for _, c := range m.changes {
			changed[m.name] = append(changed[m.name], c.in.String())
		}
	}
	steps := regexp.MustCompile(`(?ms)^\d+\. \*(.*?)\*(.*?)(?:\z|\n\n|\n\d+\. )`)
	numbers := regexp.MustCompile(`(?m)^\d+\. `).FindAllString(argument, -1)
	seen := 0
	for rest := argument; ; seen++ {
		at := steps.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		title, step := rest[at[2]:at[3]], rest[at[4]:at[5]]
		rest = rest[at[5]:]
		pairs := regexp.MustCompile("`([\\w.]+)`:((?:\\s+`[a-z-]+`,?)+)").FindAllStringSubmatch(step, -1)
		if len(pairs) == 0 {
			t.Errorf("the step %q names no function with a mutant", title)
		}
		for _, p := range pairs {
			for _, m := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(p[2], -1) {
				if !slices.Contains(changed[m[1]], p[1]) {
					t.Errorf("the step %q: the mutant %s changes %q, not %s", title, m[1], changed[m[1]], p[1])
				}
			}
		}
	}
	if seen < 10 || seen != len(numbers) {
		t.Errorf("%d of %d steps were read", seen, len(numbers))
	}
}
