package main

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// mutant is a deliberate bug. It changes only the bodies of functions.
type mutant struct {
	name   string
	breaks string   // the wrong behaviour, as a sentence for the table
	file   string   // the file that it changes, relative to the module's root
	edits  []edit   // the changes to that file
	tests  []string // the tests that are expected to fail
	by     string   // the package that has these tests; "" means the file's own package
}

// core is the package whose tests also find mutants in its internal packages.
const core = "zklock"

// edit replaces a text, which has to occur exactly once in the file.
type edit struct{ from, to string }

// change returns the edits of a mutant that has a single edit.
func change(from, to string) []edit { return []edit{{from, to}} }

// all returns all mutants, in the order of their subjects.
func all() []numbered {
	var list []numbered
	for i, m := range slices.Concat(leaseMutants, sessionMutants, restMutants, queueMutants, frontMutants, createMutants, freshMutants, keepMutants, commitMutants,
		removeMutants, handoverMutants, inheritMutants, holdMutants, revokeMutants, healthyMutants, onceMutants, lossMutants, massMutants, ruleMutants, viewMutants, driverMutants, electionMutants, modelMutants, commandMutants) {
		list = append(list, numbered{m, i + 1})
	}
	return list
}

// pkg is the folder of the package that the mutant is in.
func (m mutant) pkg() string { return path.Dir(m.file) }

// tester is the folder of the package whose tests have to find the mutant.
func (m mutant) tester() string { return cmp.Or(m.by, m.pkg()) }

// packages returns the packages with mutants that the tests of package tester have to find.
func packages(tester string) (found []string) {
	for _, m := range all() {
		if m.tester() == tester && !slices.Contains(found, m.pkg()) {
			found = append(found, m.pkg())
		}
	}
	return found
}

// apply returns the file's text with the mutant in it. A mutant is stale if one of its
// texts does not occur exactly once in the file: the code has changed since, and the
// mutant has to be adapted.
func (m mutant) apply(source string) (string, error) {
	for i, e := range m.edits {
		if n := strings.Count(source, e.from); n != 1 {
			return "", fmt.Errorf("mutant %s is stale: text %d occurs %d times in %s, not once:\n%s", m.name, i+1, n, m.file, e.from)
		}
		source = strings.Replace(source, e.from, e.to, 1)
	}
	return source, nil
}
