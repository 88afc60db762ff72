// Command layers lists the calls inside a package: every call from one file to another,
// the layer of each file, the calls that go up a layer, and the types that refer to each
// other in a circle. For the core it also prints lines, types and circles by package, and what
// other packages lock and write of session.Session. It reads the layers, top down, from the table in the package's
// DESIGN.md.
//
//	go run ./integration_test/layers                     the numbers, and the calls that go up
//	go run ./integration_test/layers -calls              every call from file to file
//	go run ./integration_test/layers -dir other/zklock   a package in another folder
//	go run ./integration_test/layers -walk               what a reader of an Acquire and a Release goes through
//	go run ./integration_test/layers -walk -calls        with the calls, in their order
//
// The tests of this package have a maximum for the calls that go up, and for each circle. A
// maximum may be lowered. No field or method of the core is reached through two embedded fields, and no two types of it
// have one name, other than a public type and what that is the face of.
package main
