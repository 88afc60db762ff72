// Command matrix runs the tests on real servers with each release line of ZooKeeper that
// users run. It fetches the servers with Maven, once, into a cache.
//
//	go run ./integration_test/matrix [-lines regexp] [-suites regexp] [-rotate] [-chaos 1m]
//
// It prints a table of versions and suites, with the outcome, the number of tests and the
// seconds, and below the table which tests were skipped, and why. It fails if a test failed, or if
// servers or libraries that have been released could not be fetched.
//
// With -rotate it runs the quick suites on the newest line and on another one, which the date
// chooses, and upgrades servers of that line to the newest. So CI runs all of them in turn. The
// newest releases of other lock libraries are tested on the newest line only.
package main
