package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"

	_ "modernc.org/sqlite"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// openDatabase opens the SQLite file. Transactions wait for each other when they begin.
func openDatabase(path string) (*sql.DB, error) {
	return sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)")
}

// createTables creates the job's table, and that of package fence.
func createTables(ctx context.Context, db *sql.DB) error {
	for _, statement := range []string{fence.SQLite.Schema(), "CREATE TABLE invoices (customer INTEGER NOT NULL)"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// next returns the first customer without an invoice, or 0 if all have one.
func next(ctx context.Context, db *sql.DB) (int, error) {
	for customer := 1; customer <= customers; customer++ {
		n, err := invoices(ctx, db, customer)
		if n == 0 || err != nil {
			return customer, err
		}
	}
	return 0, nil
}

// invoices returns how many invoices a customer has.
func invoices(ctx context.Context, db *sql.DB, customer int) (n int, err error) {
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM invoices WHERE customer = ?", customer).Scan(&n)
	return n, err
}

// write writes an invoice. It fails if a newer holder of the lock has written already.
func (j *job) write(ctx context.Context, customer int, lock *zklock.Lock) error {
	const insert = "INSERT INTO invoices (customer) VALUES (?)"
	if j.unfenced {
		_, err := j.db.ExecContext(ctx, insert, customer)
		return err
	}
	return fence.InTx(ctx, j.db, fence.SQLite, lock, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insert, customer)
		return err
	})
}

// check checks the result of the job: one invoice for each customer.
func check(ctx context.Context, db *sql.DB, out io.Writer) error {
	var errs []error
	for customer := 1; customer <= customers; customer++ {
		n, err := invoices(ctx, db, customer)
		if err == nil && n != 1 {
			err = fmt.Errorf("customer %d has %d invoices, want 1", customer, n)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Fprintf(out, "ok: each of the %d customers has one invoice\n", customers)
	return nil
}
