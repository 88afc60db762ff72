// Command record runs the suites that look for bugs, and writes what they have done as a page,
// docs/track-record.md.
//
//	go run ./integration_test/record [-for 10m] [-suites regexp] [-md file]
//
// Each suite gets a share of the time; some have a length of their own, which is a few minutes
// in total. The figures on the page are those that the suites print. Only found.txt is written by
// hand: what was found and mended, and failures of other libraries. The command fails if a suite fails. What each
// suite has printed, and its figures, are kept in bin/record: with -suites, a page has the newest
// runs of the others from there.
package main
