package session

import (
	"errors"
	"testing"

	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// Ids may come in another order than their requests: each is compared with what was known before its
// request. Once an id is too small, no later one is trusted.
func TestTransactionIDsThatWentBack(t *testing.T) {
	var o order
	note := func(seen, zxid int64, first, back bool) {
		t.Helper()
		if f, err := o.note(seen, zxid); f != first || errors.Is(err, errs.ErrTokenRegression) != back {
			t.Errorf("transaction %d after %d: first %v, error %v; want first %v, a regression: %v", zxid, seen, f, err, first, back)
		}
	}
	note(0, 5, false, false)
	note(5, 9, false, false)
	note(5, 7, false, false) // it was sent before 9 was known
	if n := o.newest.Load(); n != 9 {
		t.Errorf("the newest is %d, want 9", n)
	}
	note(9, 9, true, true)
	note(9, 8, false, true)
	note(9, 100, false, true)
	if o.err() == nil {
		t.Error("tokens can be trusted again")
	}
}
