package migratelock_test

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// provider returns a provider for the database in a file.
func provider(t *testing.T, file string, option goose.ProviderOption, before func(context.Context) error) *goose.Provider {
	t.Helper()
	db, err := opened(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if before == nil {
		before = func(context.Context) error { return nil }
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, gooseFiles(), option, paused(before))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// When the lock is lost, goose's migration is cancelled and rolled back, and Up returns the loss.
func TestGooseStopsWhenTheLockIsLost(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	file := databaseFile(t)
	l := migratelock.New(client(t, e).Mutex(migrations))
	p := provider(t, file, goose.WithLocker(l), func(ctx context.Context) error {
		e.ExpireAll()
		<-ctx.Done()
		return context.Cause(ctx)
	})
	ctx, stop := migratelock.WithLoss(t.Context())
	defer stop()
	if _, err := p.Up(ctx); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("Up: %v, want the loss", err)
	}
	if got, want := tables(t, file), []string{"orders", "persons"}; !slices.Equal(got, want) {
		t.Errorf("the database has the tables %q, want %q", got, want)
	}
	again := provider(t, file, goose.WithLocker(l), nil)
	if results, err := again.Up(t.Context()); err != nil || len(results) != 2 {
		t.Errorf("Up of the next: %d migrations, %v, want 2", len(results), err)
	}
}

// A migration without a transaction that does not look at its context succeeds after the loss. With
// WithLoss no further one begins.
func TestGooseBeginsNoMigrationAfterTheLoss(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	file := databaseFile(t)
	db, err := opened(file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	began := false
	p, err := goose.NewProvider(goose.DialectSQLite3, db, gooseFiles(), goose.WithLocker(migratelock.New(client(t, e).Mutex(migrations))), goose.WithGoMigrations(
		goose.NewGoMigration(3, &goose.GoFunc{RunDB: func(ctx context.Context, db *sql.DB) error {
			e.ExpireAll()
			<-ctx.Done()
			_, err := db.ExecContext(context.WithoutCancel(ctx), "CREATE TABLE goods (id INTEGER)")
			return err
		}}, nil),
		goose.NewGoMigration(4, &goose.GoFunc{RunDB: func(context.Context, *sql.DB) error {
			began = true
			return nil
		}}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := migratelock.WithLoss(t.Context())
	defer stop()
	if _, err := p.Up(ctx); !errors.Is(err, zklock.ErrLost) || began {
		t.Errorf("Up: %v, a further migration has begun: %v, want the loss, and none", err, began)
	}
	if got, want := tables(t, file), []string{"goods", "orders", "persons"}; !slices.Equal(got, want) {
		t.Errorf("the database has the tables %q, want %q", got, want)
	}
}

// Without WithLoss, Up goes on to its end, and then returns the loss.
func TestGooseReportsTheLoss(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	noticed := make(chan struct{})
	c, err := zklock.OpenConnector(e.Connector(), zklock.WithHooks(zklock.Hooks{Lost: func(context.Context, zklock.LostEvent) { close(noticed) }}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := provider(t, databaseFile(t), goose.WithSessionLocker(migratelock.New(c.Mutex(migrations))), func(ctx context.Context) error {
		e.ExpireAll()
		<-noticed
		return ctx.Err() // nil: the migration goes on
	})
	if _, err := p.Up(t.Context()); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("Up: %v, want the loss", err)
	}
}
