package migratelock_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock/locktesting"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// goose's own suite: of five providers, one applies all migrations.
func TestGooseProviderLocking(t *testing.T) {
	for what, option := range map[string]func(*migratelock.Locker) goose.ProviderOption{
		"locker":         func(l *migratelock.Locker) goose.ProviderOption { return goose.WithLocker(l) },
		"session locker": func(l *migratelock.Locker) goose.ProviderOption { return goose.WithSessionLocker(l) },
	} {
		t.Run(what, func(t *testing.T) {
			e := memdriver.New()
			defer e.Close()
			file := databaseFile(t)
			locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
				return provider(t, file, option(migratelock.New(client(t, e).Mutex(migrations))), nil)
			})
		})
	}
}

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

// When the lock is lost, goose's migration is cancelled and rolled back, no further one begins,
// and Up returns the loss.
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
