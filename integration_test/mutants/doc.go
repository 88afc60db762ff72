// Command mutants shows what the tests of the core are worth. It has a list of
// deliberate bugs, mutants, most of them mistakes that a lock on ZooKeeper was
// made with before. Each is built into the core, and the tests have to fail.
//
//	go run ./integration_test/mutants [-run regexp] [-parallel 2] [-seeds 300]
//
// A mutant is a text in a source file and what takes its place. It is applied
// with the build's overlay, so no file is ever changed. The tests that are
// expected to fail run first; if they pass, the package's other quick tests; if
// these pass too, the simulation, for a number of seeds. The table tells which
// test it was. A mutant that survives is a hole in the tests, and the command
// fails.
//
// The command proves nothing if the tests fail without any mutant: so they run
// on the code as it is first.
package main
