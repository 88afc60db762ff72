// Command record runs the suites that look for bugs, adds what they have done to a ledger, and writes the
// ledger's page, docs/track-record.md.
//
//	go run ./integration_test/record [-for 2h] [-each 5m] [-waiting 1] [-suites regexp] [-ledger file] [-md file]
//
// It goes round the suites: the next one is always that which is furthest behind its share of the minutes in the ledger. So
// it can be stopped, also by a signal, and started again: only the runs under way are lost. A suite that would do
// the same again runs once a commit.
//
// A line of the ledger adds up the runs of a suite on one day, at one commit and on one machine. The figures are those
// that the suites print. Written by hand are found.txt, what was found and mended and failures of other
// libraries, and the field note of lines with violations. The command fails if a run fails. What each suite has
// printed is kept in bin/record, and so is the history of a run of the judge of contrib/locktest that failed.
package main
