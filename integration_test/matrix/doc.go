// Command matrix runs the tests on real servers with each release line of ZooKeeper that
// users run. It fetches the servers with Maven, once, into a cache.
//
//	go run ./integration_test/matrix [-lines regexp] [-suites regexp] [-rotate] [-chaos 1m]
//
// It prints a table of versions and suites, with the outcome, the number of tests and the
// seconds, and below the table which tests were skipped, and why. It fails if a test failed.
//
// With -rotate it runs the quick suites, on the newest line and on one of the others, which
// changes with the date. So CI runs all of them in turn.
package main
