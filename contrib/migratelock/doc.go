// Package migratelock lets one process of a fleet migrate a database at a time, with goose or
// with golang-migrate. The lock is in ZooKeeper, so it works with every database, also behind a
// connection pooler that breaks advisory locks.
//
// For goose, a [Locker] is both its lock.Locker and its lock.SessionLocker:
//
//	locker := migratelock.New(client.Mutex("migrations/shop"))
//	provider, err := goose.NewProvider(dialect, db, files, goose.WithLocker(locker))
//	...
//	ctx, stop := migratelock.WithLoss(ctx) // ends if the lock is lost
//	defer stop()
//	results, err := provider.Up(ctx)
//
// For golang-migrate, [Wrap] puts the lock around a database driver:
//
//	driver = migratelock.Wrap(driver, client.Mutex("migrations/shop"))
//	m, err := migrate.NewWithInstance("iofs", source, "postgres", driver)
//
// # Losses
//
// A lock can be lost while a migration runs, for example when the process is cut off from
// ZooKeeper for longer than its session timeout. Neither library can be notified of that.
//
// With goose, Unlock returns the loss, so that Up fails with an error that matches
// [zklock.ErrLost]. [WithLoss] also ends the context of the migration that runs.
//
// With golang-migrate, the driver refuses to begin a migration, to write a version, or to drop
// the database when its lock is lost. The statement that runs goes on: the library passes no
// context to it. The database is left dirty then, and no replica migrates it until an operator
// has looked at it.
package migratelock
