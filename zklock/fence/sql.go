package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/zklock/go-zklock/zklock"
)

// maxResource is the length of the longest name of a resource, in bytes: the width of
// MySQL's column. That is also the length of the longest lock name.
const maxResource = 512

// Check records the lock's token in the database, or refuses it with a *StaleError if the
// database has seen a newer one. It does so within tx, so the token is recorded if and only if
// the caller's writes are. As in [Guard], a writer's token is compared with all tokens of the
// lock's name, and a reader's token with those of writers only. A lock that has several names
// is checked for each of them. A nil lock and a permit are an error that matches
// [ErrUnfenced].
//
//	tx, err := db.BeginTx(ctx, nil)
//	...
//	defer tx.Rollback()
//	if err := fence.PostgreSQL.Check(ctx, tx, lock); err != nil {
//		return err
//	}
//	... // the writes
//	return tx.Commit()
//
// [InTx] does all of this.
//
// If Check returns nil, it has locked the name's row until the end of the transaction: until
// then no other transaction gets an answer from Check for the same name. Call Check before the
// transaction's own statements. Then a stale holder neither reads nor writes anything, and
// transactions take their locks in one order.
//
// After an error the caller must roll the transaction back. An error that does not
// match ErrStale says nothing about the token. It wraps the error of the database's driver.
// After a deadlock or a serialization failure the caller may try the whole transaction again.
//
// The table of [Dialect.Schema] must exist. Check makes one statement for each name, and one
// more to learn the newer token if it refuses. It is safe for concurrent use with different
// transactions.
func (d Dialect) Check(ctx context.Context, tx Tx, lock *zklock.Lock) error {
	seqs := Of(lock) // in the order of the names, which is that of all transactions
	if len(seqs) == 0 {
		return errNoSequencer
	}
	for _, s := range seqs {
		if err := d.CheckSequencer(ctx, tx, s.Name, s); err != nil {
			if stale := (*StaleError)(nil); errors.As(err, &stale) {
				stale.Held = lock.Valid()
			}
			return err
		}
	}
	return nil
}

// errNoSequencer is the error of Check for a lock that has no sequencer.
var errNoSequencer = fmt.Errorf("fence: the lock is nil or a permit: %w", ErrUnfenced)

// CheckSequencer is [Dialect.Check] for a resource under a name of its own, and for a sequencer
// that another process has sent.
//
// The resource is a text of 1 to 512 bytes without NUL. All holders that write to it must
// hold the same lock, since tokens of different locks have no common order. The same holds
// for locks of two ensembles; CheckSequencer ignores the sequencer's Origin. If a write is
// on behalf of several locks, call it for each, always in the same order.
func (d Dialect) CheckSequencer(ctx context.Context, tx Tx, resource string, s Sequencer) error {
	sql, err := d.sql()
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
	record := sql.writer
	if s.Mode == zklock.Shared {
		record = sql.reader
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
	newest, err := sql.newer(ctx, tx, resource, s.Mode)
	if err != nil {
		return fmt.Errorf("fence: token %v for resource %q was refused: %w; the newer one cannot be read: %w", s.Token, resource, ErrStale, err)
	}
	return &StaleError{Name: s.Name, Token: s.Token, Newest: newest}
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
