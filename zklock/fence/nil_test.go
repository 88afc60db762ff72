package fence_test

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// A nil function or database is a mistake in the program: nothing is begun, and nothing is recorded.
func TestNilArgumentsAreMisuse(t *testing.T) {
	c := open(t)
	lock, err := c.Mutex("a").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := script{rows: 1}
	db := sql.OpenDB(&s)
	defer db.Close()
	var guard fence.Guard
	for what, call := range map[string]func() error{
		"InTx without a function": func() error { return fence.InTx(t.Context(), db, fence.PostgreSQL, lock, nil) },
		"InTx without a database": func() error {
			return fence.InTx(t.Context(), nil, fence.PostgreSQL, lock, func(*sql.Tx) error { return nil })
		},
		"Do without a function": func() error { return guard.Do(fence.Of(lock), nil) },
	} {
		func() {
			defer func() {
				if v := recover(); v != nil {
					t.Errorf("%s panics: %v", what, v)
				}
			}()
			if err := call(); !errors.Is(err, zklock.ErrMisuse) {
				t.Errorf("%s: %v, want ErrMisuse", what, err)
			}
		}()
	}
	if s.ends != "" {
		t.Errorf("a transaction was begun, and ended with %q", s.ends)
	}
}
