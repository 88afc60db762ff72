package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// mutant is a deliberate bug. It is inside of functions.
type mutant struct {
	name   string
	breaks string   // what it breaks, for people
	file   string   // that it changes, from the module's root
	edits  []edit   // what it changes there
	tests  []string // that are expected to fail
}

// edit replaces a text, which has to occur exactly once in the file.
type edit struct{ from, to string }

// change is the edits of a mutant that has one.
func change(from, to string) []edit { return []edit{{from, to}} }

// all are the mutants by what they are about.
func all() []numbered {
	var list []numbered
	for i, m := range slices.Concat(leaseMutants, sessionMutants, queueMutants, frontMutants, createMutants, commitMutants,
		removeMutants, handoverMutants, inheritMutants, holdMutants, lossMutants, massMutants, ruleMutants, driverMutants) {
		list = append(list, numbered{m, i + 1})
	}
	return list
}

// pkg is the folder of the package that the mutant is in, and whose tests are to
// find it.
func (m mutant) pkg() string { return path.Dir(m.file) }

// apply returns the file's text with the mutant in it. A mutant whose texts are
// not in the file exactly once is stale: the code has changed, and the mutant has
// to follow.
func (m mutant) apply(source string) (string, error) {
	for i, e := range m.edits {
		if n := strings.Count(source, e.from); n != 1 {
			return "", fmt.Errorf("mutant %s is stale: text %d occurs %d times in %s, not once:\n%s", m.name, i+1, n, m.file, e.from)
		}
		source = strings.Replace(source, e.from, e.to, 1)
	}
	return source, nil
}
