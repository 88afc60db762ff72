package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock"
)

// Tx is a transaction that a [Dialect] can check tokens in. A *sql.Tx is a Tx, and [Pgx] turns a
// transaction of pgx into one.
type Tx interface {
	// ExecContext executes a statement. A Tx that also has the method QueryRowContext of
	// *sql.Tx shows the newer token in a *StaleError; the error of any other matches ErrStale.
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// InTx begins a transaction of db, checks the lock in it (see [Dialect.Check]), and calls fn.
// It commits if fn returns nil. Otherwise, and if fn panics, it rolls the transaction back.
//
//	err := fence.InTx(ctx, db, fence.PostgreSQL, lock, func(tx *sql.Tx) error {
//		_, err := tx.ExecContext(ctx, "UPDATE orders SET status = 'paid' WHERE id = 42")
//		return err
//	})
//
// InTx returns the first error of the begin, the check, fn and the commit. If it matches
// [ErrStale], nothing was written. If db or fn is nil, the error matches [zklock.ErrMisuse].
func InTx(ctx context.Context, db *sql.DB, dialect Dialect, lock *zklock.Lock, fn func(tx *sql.Tx) error) error {
	if db == nil || fn == nil {
		return fmt.Errorf("fence: InTx: %w: the database or the function is nil: pass both", zklock.ErrMisuse)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if err := dialect.Check(ctx, tx, lock); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Pgx makes a Tx of a pgx.Tx, the transaction of github.com/jackc/pgx, for [PostgreSQL]. The
// parameters stand for pgx's types, so that this package does not require pgx; the compiler finds
// them:
//
//	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
//		if err := fence.PostgreSQL.Check(ctx, fence.Pgx(tx), lock); err != nil {
//			return err
//		}
//		_, err := tx.Exec(ctx, "UPDATE orders SET status = 'paid' WHERE id = 42")
//		return err
//	})
func Pgx[Tag interface{ RowsAffected() int64 }, Row interface{ Scan(dest ...any) error }](tx interface {
	Exec(ctx context.Context, query string, args ...any) (Tag, error)
	QueryRow(ctx context.Context, query string, args ...any) Row
}) Tx {
	return pgxTx{
		func(ctx context.Context, query string, args []any) (int64, error) {
			tag, err := tx.Exec(ctx, query, args...)
			return tag.RowsAffected(), err
		},
		func(ctx context.Context, query string, args []any) row { return tx.QueryRow(ctx, query, args...) },
	}
}

// pgxTx is a transaction of pgx.
type pgxTx struct {
	exec     func(ctx context.Context, query string, args []any) (int64, error)
	queryRow func(ctx context.Context, query string, args []any) row
}

// ExecContext implements Tx.
func (tx pgxTx) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	n, err := tx.exec(ctx, query, args)
	return affected(n), err
}

// affected is the number of rows that a statement has affected.
type affected int64

// LastInsertId implements sql.Result.
func (affected) LastInsertId() (int64, error) { return 0, errors.ErrUnsupported }

// RowsAffected implements sql.Result.
func (n affected) RowsAffected() (int64, error) { return int64(n), nil }

// row is the answer to a query for one row.
type row interface{ Scan(dest ...any) error }

// readRow queries one row.
func readRow(ctx context.Context, tx Tx, query string, args ...any) row {
	switch tx := tx.(type) {
	case pgxTx:
		return tx.queryRow(ctx, query, args)
	case interface {
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	}:
		return tx.QueryRowContext(ctx, query, args...)
	}
	return unreadable{}
}

// unreadable is the row of a Tx that cannot query.
type unreadable struct{}

// Scan implements row.
func (unreadable) Scan(...any) error { return errors.ErrUnsupported }
