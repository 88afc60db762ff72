package fence_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// Each transaction of a batch records the token. A holder that has lost the lock without
// noticing it is refused by the database, together with its writes.
func ExampleInTx() {
	pay := func(ctx context.Context, client *zklock.Client, db *sql.DB) error {
		err := zklock.Do(ctx, client.Mutex("orders/42"), func(ctx context.Context, lock *zklock.Lock) error {
			return fence.InTx(ctx, db, fence.PostgreSQL, lock, func(tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE orders SET status = 'paid' WHERE id = 42")
				return err
			})
		})
		if errors.Is(err, fence.ErrStale) {
			return fmt.Errorf("another client has the lock by now, and nothing was written: %w", err)
		}
		return err
	}
	_ = pay // needs a database: examples/batch runs it on SQLite
}

// The table is created once, by the tool that also creates the other tables.
func ExampleDialect_Schema() {
	fmt.Println(fence.SQLite.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS zklock_fence (
	// 	resource TEXT NOT NULL PRIMARY KEY,
	// 	newest TEXT NOT NULL,
	// 	writer TEXT NOT NULL DEFAULT '0000000000000000.00000000'
	// ) WITHOUT ROWID
}
