package migratelock_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/pressly/goose/v3"

	"github.com/zklock/go-zklock/contrib/migratelock"
	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// A program that migrates with goose when it starts, in each of its replicas.
func ExampleNew() {
	client, err := zklock.Open("mem://") // in production zk://host:port,host:port/shop
	if err != nil {
		panic(err)
	}
	defer client.Close()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // a database in memory belongs to one connection
	files := fstest.MapFS{"1_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id INTEGER);\n")}}

	locker := migratelock.New(client.Mutex("migrations/shop"), migratelock.WithLabel("shop 1.4"))
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		panic(err)
	}
	ctx, stop := migratelock.WithLoss(context.Background()) // ends if the lock is lost
	defer stop()
	results, err := provider.Up(ctx)
	fmt.Println(len(results), err)
	// Output: 1 <nil>
}

// A program that migrates with golang-migrate when it starts, in each of its replicas.
func ExampleWrap() {
	client, err := zklock.Open("mem://") // in production zk://host:port,host:port/shop
	if err != nil {
		panic(err)
	}
	defer client.Close()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		panic(err)
	}
	db.SetMaxOpenConns(1) // a database in memory belongs to one connection
	driver, err := sqlite.WithInstance(db, new(sqlite.Config))
	if err != nil {
		panic(err)
	}
	source, err := iofs.New(fstest.MapFS{"1_orders.up.sql": {Data: []byte("CREATE TABLE orders (id INTEGER);")}}, ".")
	if err != nil {
		panic(err)
	}

	driver = migratelock.Wrap(driver, client.Mutex("migrations/shop"),
		migratelock.WithoutDatabaseLock(), migratelock.WithWait(0)) // replicas that come second fail with ErrLocked
	migrator, err := migrate.NewWithInstance("iofs", source, "sqlite", driver)
	if err != nil {
		panic(err)
	}
	defer migrator.Close()
	fmt.Println(migrator.Up())
	fmt.Println(migrator.Version())
	// Output:
	// <nil>
	// 1 false <nil>
}
