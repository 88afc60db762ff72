// Command layers draws who calls whom in a package: every call from one file to another,
// the layer of each file, the calls that go up a layer, and the types that know each
// other in a circle. The layers are those of the table in the package's DESIGN.md, top
// down.
//
//	go run ./integration_test/layers                     the numbers, and the calls that go up
//	go run ./integration_test/layers -calls              every call from file to file
//	go run ./integration_test/layers -dir other/zklock   another tree
//
// The tests of this package hold the numbers: they may get smaller.
package main
