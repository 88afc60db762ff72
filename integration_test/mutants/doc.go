// Command mutants checks whether the tests find bugs. Packages list deliberate bugs of their
// own, called mutants, in their test files mutants*_test.go, in the form of package
// internal/testkit/mutant. Most of them are mistakes that earlier locks on ZooKeeper have
// made. Each breaks one rule, and the tests must fail.
//
//	go run ./integration_test/mutants [-run regexp] [-parallel 2] [-seeds 300]
//
// A mutant names a function, a piece of its syntax tree, and what replaces it. It is applied
// with the build's overlay, so no source file is changed. The tests that are
// expected to fail run first. If they pass, the package's other quick tests run. If
// these pass too, the simulation of zklock/internal/simulation runs, for a number of seeds. The printed table names
// the test that failed. A mutant that survives is a hole in the tests, and the command
// fails.
//
// The command proves nothing if the tests fail without any mutant. So the tests run
// on the unchanged code first.
package main
