package databases

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// TestNativePgx: a transaction of pgx is checked as one of database/sql is, and the refusal has the
// newer token. What is refused is rolled back.
func TestNativePgx(t *testing.T) {
	ctx := within(t)
	database{dialect: fence.PostgreSQL, source: onPostgres("")}.open(t) // with the table
	conn, err := pgx.Connect(ctx, postgres.address(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	write := func(s fence.Sequencer) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			return fence.PostgreSQL.CheckSequencer(ctx, fence.Pgx(tx), "pgx", s)
		})
	}
	late, newer := seq("pgx", zklock.Exclusive, 4, 0), seq("pgx", zklock.Shared, 9, 2)
	for range 2 {
		if err := write(newer); err != nil {
			t.Fatal(err)
		}
	}
	var stale *fence.StaleError
	if err := write(late); !errors.As(err, &stale) || *stale != (fence.StaleError{Name: "pgx", Token: late.Token, Newest: newer.Token}) {
		t.Errorf("%v, want a refusal because of %v", err, newer.Token)
	}
}
