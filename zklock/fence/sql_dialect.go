package fence

import (
	"context"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
)

// Dialect is a kind of SQL database. [Dialect.Check] records tokens in one.
type Dialect uint8

const (
	// PostgreSQL is the dialect of PostgreSQL 9.5 and newer.
	PostgreSQL Dialect = iota + 1

	// MySQL is the dialect of MySQL 5.7 and newer, and of MariaDB 10.2 and newer. It is tested with MariaDB.
	MySQL

	// SQLite is the dialect of SQLite 3.24 and newer.
	SQLite
)

// String returns the name of the database.
func (d Dialect) String() string {
	if sql, ok := dialects[d]; ok {
		return sql.name
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// Schema returns the statement that creates the table of [Dialect.Check], zklock_fence, if it
// does not exist. The table has one row for each resource. Delete a row only when no process
// works on the resource: without the row, Check accepts late writes. A new ensemble starts with
// small tokens: stop all holders and empty the table first. Schema panics if d is none of the
// constants.
func (d Dialect) Schema() string {
	sql, err := d.sql()
	if err != nil {
		panic(err.Error())
	}
	return sql.schema
}

// dialect is what a check sends to one kind of database.
//
// A row has the newest of all tokens of its resource, and the newest one of a writer:
// Guard's record in a table. Tokens are stored as text. A column compares them byte by
// byte, since the order of their texts is that of the tokens.
//
// Invariants of writer and reader:
//   - The statement locks the row before it compares, and compares with the row's latest
//     version. A transaction whose isolation level hides that version fails instead. So tokens
//     are accepted in the order of the transactions' commits.
//   - A refused token changes no column.
type dialect struct {
	name   string
	schema string
	writer statement // records a writer's token
	reader statement // records a reader's token
	record string    // reads newest and writer
}

// statement is an SQL statement with its parameters.
type statement struct {
	text string

	// params has a letter for each parameter: r for the resource, t for the token.
	params string

	// accepted is the least number of affected rows that means that the token was accepted.
	accepted int64
}

// values returns the values of the parameters.
func (s statement) values(resource, token string) []any {
	values := make([]any, len(s.params))
	for i, p := range s.params {
		values[i] = resource
		if p == 't' {
			values[i] = token
		}
	}
	return values
}

// noToken is the zero token as text. It is less than all others.
const noToken = "0000000000000000.00000000"

// dialects has what is sent in each Dialect. In PostgreSQL and SQLite the condition of the
// conflict's update refuses a token, and no row is affected then.
var dialects = map[Dialect]dialect{
	PostgreSQL: {
		name: "PostgreSQL",
		schema: `CREATE TABLE IF NOT EXISTS zklock_fence (
	resource text COLLATE "C" PRIMARY KEY,
	newest char(25) COLLATE "C" NOT NULL,
	writer char(25) COLLATE "C" NOT NULL DEFAULT '` + noToken + `'
)`,
		writer: statement{`INSERT INTO zklock_fence AS f (resource, newest, writer) VALUES ($1, $2, $2)
ON CONFLICT (resource) DO UPDATE SET newest = excluded.newest, writer = excluded.newest
WHERE f.newest <= excluded.newest`, "rt", 1},
		reader: statement{`INSERT INTO zklock_fence AS f (resource, newest) VALUES ($1, $2)
ON CONFLICT (resource) DO UPDATE SET newest = GREATEST(f.newest, excluded.newest)
WHERE f.writer <= excluded.newest`, "rt", 1},
		record: `SELECT newest, writer FROM zklock_fence WHERE resource = $1`,
	},
	SQLite: {
		name: "SQLite",
		schema: `CREATE TABLE IF NOT EXISTS zklock_fence (
	resource TEXT NOT NULL PRIMARY KEY,
	newest TEXT NOT NULL,
	writer TEXT NOT NULL DEFAULT '` + noToken + `'
) WITHOUT ROWID`,
		writer: statement{`INSERT INTO zklock_fence AS f (resource, newest, writer) VALUES (?1, ?2, ?2)
ON CONFLICT (resource) DO UPDATE SET newest = excluded.newest, writer = excluded.newest
WHERE f.newest <= excluded.newest`, "rt", 1},
		reader: statement{`INSERT INTO zklock_fence AS f (resource, newest) VALUES (?1, ?2)
ON CONFLICT (resource) DO UPDATE SET newest = max(f.newest, excluded.newest)
WHERE f.writer <= excluded.newest`, "rt", 1},
		record: `SELECT newest, writer FROM zklock_fence WHERE resource = ?1`,
	},
	// MySQL's update of a conflict has no condition, so each column must have one. The number
	// of affected rows is the only answer. It is 1 for an inserted row and 2 for a changed one.
	// For an unchanged row it is 0, or 1 if the connection counts the rows that it finds
	// (clientFoundRows). An equal token changes no token, so accepted is a counter that only an
	// accepted token raises. The same row is given twice, because once would leave an insertion
	// and a refusal with the same number, 1:
	//
	//	                    inserted    accepted    refused
	//	rows changed        1 + 2       2 + 2       0 + 0
	//	rows found          1 + 2       2 + 2       1 + 1
	//
	// Servers make assignments from left to right, or all at once; here both give the same.
	// VALUES() would save parameters, but newer servers warn of it. The resource is binary
	// because texts may be equal that differ in case or in spaces at the end.
	MySQL: {
		name: "MySQL",
		schema: `CREATE TABLE IF NOT EXISTS zklock_fence (
	resource varbinary(512) NOT NULL PRIMARY KEY,
	newest char(25) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
	writer char(25) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '` + noToken + `',
	accepted bigint unsigned NOT NULL DEFAULT 0
) ENGINE=InnoDB`,
		writer: statement{`INSERT INTO zklock_fence (resource, newest, writer) VALUES (?, ?, ?), (?, ?, ?)
ON DUPLICATE KEY UPDATE accepted = accepted + (newest <= ?), writer = IF(newest <= ?, ?, writer), newest = GREATEST(newest, ?)`,
			"rttrtttttt", 3},
		reader: statement{`INSERT INTO zklock_fence (resource, newest) VALUES (?, ?), (?, ?)
ON DUPLICATE KEY UPDATE accepted = accepted + (writer <= ?), newest = GREATEST(newest, ?)`,
			"rtrttt", 3},
		// A plain SELECT would read the transaction's snapshot, which may be older.
		record: `SELECT newest, writer FROM zklock_fence WHERE resource = ? FOR UPDATE`,
	},
}

func (d Dialect) sql() (dialect, error) {
	sql, ok := dialects[d]
	if !ok {
		return dialect{}, fmt.Errorf("fence: unknown SQL dialect %v: use fence.MySQL, fence.PostgreSQL or fence.SQLite", d)
	}
	return sql, nil
}

// newer reads the token that made the database refuse an older one in that mode.
func (d dialect) newer(ctx context.Context, tx Tx, resource string, mode zklock.Mode) (zklock.Token, error) {
	var newest, writer string
	if err := readRow(ctx, tx, d.record, resource).Scan(&newest, &writer); err != nil {
		return zklock.Token{}, err
	}
	if mode == zklock.Shared {
		return zklock.ParseToken(writer)
	}
	return zklock.ParseToken(newest)
}
