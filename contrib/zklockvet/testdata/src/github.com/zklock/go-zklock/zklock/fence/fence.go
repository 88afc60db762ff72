// Package fence has the names of the real one that the tests call.
package fence

import (
	"context"
	"database/sql"

	"github.com/zklock/go-zklock/zklock"
)

type Dialect int

const PostgreSQL Dialect = 1

func InTx(ctx context.Context, db *sql.DB, dialect Dialect, lock *zklock.Lock, fn func(tx *sql.Tx) error) error {
	return nil
}
