package migratelock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/pressly/goose/v3"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/internal/testkit/fleet"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/zkdriver"
)

func TestMain(m *testing.M) {
	os.Exit(fleet.Main(m, map[string]fleet.Role{"goose": withGoose, "migrate": withMigrate, "suspended": suspended}))
}

// withGoose is a process that migrates with goose. It waits for a line in the third migration.
func withGoose(m *fleet.Member) error {
	url, file := m.Args[0], m.Args[1]
	client, err := zklock.Open(url)
	if err != nil {
		return err
	}
	defer client.Close()
	db, err := opened(file)
	if err != nil {
		return err
	}
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, gooseFiles(),
		goose.WithLocker(migratelock.New(client.Mutex(migrations))),
		paused(func(ctx context.Context) error {
			m.Say("began")
			_, err := m.AwaitIn(ctx)
			return err
		}))
	if err != nil {
		return err
	}
	m.Say("ready")
	ctx, stop := migratelock.WithLoss(context.Background())
	defer stop()
	results, err := provider.Up(ctx)
	switch {
	case errors.Is(err, zklock.ErrLost):
		m.Say("lost", err.Error())
	case err != nil:
		return err
	default:
		m.Say("migrated", strconv.Itoa(len(results)))
	}
	return nil
}

// pausing is a database driver whose second migration waits for a line.
type pausing struct {
	database.Driver
	m    *fleet.Member
	runs int
}

func (p *pausing) Run(migration io.Reader) error {
	if p.runs++; p.runs == 2 {
		p.m.Say("began")
		if _, err := p.m.Await(); err != nil {
			return err
		}
	}
	return p.Driver.Run(migration)
}

// withMigrate is a process that migrates with golang-migrate. It waits for a line in the second
// migration.
func withMigrate(m *fleet.Member) error {
	url, file := m.Args[0], m.Args[1]
	client, err := zklock.Open(url)
	if err != nil {
		return err
	}
	defer client.Close()
	db, err := opened(file)
	if err != nil {
		return err
	}
	inner, err := sqlite.WithInstance(db, new(sqlite.Config))
	if err != nil {
		return err
	}
	source, err := iofs.New(migrateFiles(), ".")
	if err != nil {
		return err
	}
	driver := migratelock.Wrap(&pausing{Driver: inner, m: m}, client.Mutex(migrations))
	migrator, err := migrate.NewWithInstance("iofs", source, "sqlite", driver)
	if err != nil {
		return err
	}
	defer migrator.Close()
	m.Say("ready")
	err = migrator.Up()
	switch version, dirty, _ := migrator.Version(); {
	case errors.Is(err, zklock.ErrLost):
		m.Say("lost", fmt.Sprint(version, dirty), err.Error())
	case errors.As(err, new(migrate.ErrDirty)):
		m.Say("dirty", err.Error())
	case err != nil && !errors.Is(err, migrate.ErrNoChange):
		return err
	default:
		m.Say("migrated", fmt.Sprint(version, dirty), fmt.Sprint(err))
	}
	return nil
}
