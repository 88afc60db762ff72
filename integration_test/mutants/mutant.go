package main

import (
	"cmp"
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
	by     string   // the package that has these tests; "" is the one that the file is in
}

// core is the package whose tests find mutants in the packages that it is made of.
const core = "zklock"

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

// pkg is the folder of the package that the mutant is in.
func (m mutant) pkg() string { return path.Dir(m.file) }

// tester is the folder of the package whose tests are to find it.
func (m mutant) tester() string { return cmp.Or(m.by, m.pkg()) }

// packages are those that have mutants which a package's tests are to find.
func packages(tester string) (found []string) {
	for _, m := range all() {
		if m.tester() == tester && !slices.Contains(found, m.pkg()) {
			found = append(found, m.pkg())
		}
	}
	return found
}

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
