package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock/go-zklock/zklock"
)

// maxResource is the length of the longest name of a resource, in bytes: the width of
// MySQL's column. That is also the length of the longest lock name.
const maxResource = 512

// SQL records the token of s for a resource, or refuses it with a *StaleError if the
// database has seen a newer one. It does so within tx, so the token is recorded if and
// only if the caller's writes are. As in [Guard], a writer's token is compared with all
// tokens of the resource, and a reader's token with those of writers only.
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	defer tx.Rollback()
//	if err := fence.SQL(ctx, tx, fence.PostgreSQL, "orders/42", fence.Of(lock)[0]); err != nil {
//		return err
//	}
//	... // the writes
//	return tx.Commit()
//
// If SQL returns nil, it has locked the resource's row until the end of the
// transaction: until then no other transaction gets an answer from SQL for the same
// resource. Call SQL before the transaction's own statements. Then a stale holder
// neither reads nor writes anything, and transactions take their locks in one order.
//
// After an error the caller must roll the transaction back. An error that does not
// match ErrStale says nothing about the token. It wraps the error of the database's
// driver: deadlocks and serialization failures, after which the whole transaction may
// be tried again, are among these.
//
// The dialect is [PostgreSQL], [MySQL] or [SQLite]. The table of [Schema] must exist. The
// resource is a text of 1 to 512 bytes without NUL. All holders that write to it must
// hold the same lock, since tokens of different locks have no common order: the lock's
// name is a good name for the resource. The same holds for locks of two ensembles; SQL
// ignores the sequencer's Origin. If a write is on behalf of several locks, call SQL for
// each, always in the same order.
//
// SQL makes one statement, and one more to learn the newer token if it refuses. It is
// safe for concurrent use with different transactions.
func SQL(ctx context.Context, tx *sql.Tx, dialect, resource string, s Sequencer) error {
	d, err := dialectOf(dialect)
	if err != nil {
		return err
	}
	if err := checkResource(resource); err != nil {
		return err
	}
	if err := s.comparable(); err != nil {
		return err
	}
	token := s.Token.String()
	if _, err := zklock.ParseToken(token); err != nil {
		return fmt.Errorf("fence: lock %q: %w", s.Name, err) // its text does not sort as the token does
	}
	record := d.writer
	if s.Mode == zklock.Shared {
		record = d.reader
	}
	result, err := tx.ExecContext(ctx, record.text, record.values(resource, token)...)
	if err != nil {
		return fmt.Errorf("fence: record token %v for resource %q: %w", s.Token, resource, err)
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("fence: learn whether token %v was recorded for resource %q: %w", s.Token, resource, err)
	}
	if rows >= record.accepted {
		return nil
	}
	newest, err := d.newer(ctx, tx, resource, s.Mode)
	if err != nil {
		return fmt.Errorf("fence: token %v for resource %q was refused: %w; the newer one cannot be read: %w", s.Token, resource, ErrStale, err)
	}
	return &StaleError{Name: s.Name, Token: s.Token, Newest: newest}
}

// Schema returns the statement that creates the table in which [SQL] records tokens,
// zklock_fence, unless it exists. The table has one row for each resource. A row may be
// deleted when no process works on the resource any more; until then it must stay, or
// late writes are accepted. If ZooKeeper is set up again, its tokens begin again at the
// smallest: then the table has to be emptied while all holders are stopped.
func Schema(dialect string) (string, error) {
	d, err := dialectOf(dialect)
	if err != nil {
		return "", err
	}
	return d.schema, nil
}

// checkResource refuses names that one of the databases would cut off or change, so
// that two resources would share a row.
func checkResource(resource string) error {
	switch {
	case resource == "":
		return errors.New("fence: the name of the resource is empty: use the lock's name, for example")
	case len(resource) > maxResource:
		return fmt.Errorf("fence: the name of the resource, %.40q..., has %d bytes: use at most %d", resource, len(resource), maxResource)
	case !utf8.ValidString(resource):
		return fmt.Errorf("fence: the name of the resource, %.40q, is not UTF-8", resource)
	case strings.ContainsRune(resource, 0):
		return fmt.Errorf("fence: the name of the resource, %.40q, contains a NUL, which PostgreSQL does not store", resource)
	}
	return nil
}
