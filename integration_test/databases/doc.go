// Package databases tests package fence on real databases: PostgreSQL, MariaDB and SQLite. It
// is a separate module, so that the library does not depend on their drivers:
//
//	go -C integration_test/databases test ./...
//
// The tests start PostgreSQL and MariaDB themselves, with their data in a temporary
// folder. The servers listen on a Unix socket in that folder only. The programs come from
// Debian's packages postgresql and mariadb-server-core: from their usual places, or from the
// folder ZKLOCK_TEST_DATABASES, where .ci/databases unpacks them. If a program is missing, its
// tests are skipped; with ZKLOCK_TEST_REQUIRED=1 they fail.
package databases
