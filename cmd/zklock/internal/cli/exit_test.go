package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// TestExitCodesOfErrors: an error that matches several gets the code of its reason.
func TestExitCodesOfErrors(t *testing.T) {
	both := func(a, b error) error { return fmt.Errorf("%w: %w", a, b) }
	for _, c := range []struct {
		err  error
		want int
	}{
		{zklock.ErrNotAcquired, 75},
		{zklock.ErrTooManyWaiters, 75},
		{zklock.ErrUnavailable, 69},
		{both(zklock.ErrUnavailable, driver.ErrTLS), 78},
		{both(zklock.ErrUnavailable, driver.ErrProtocol), 78},
		{both(zklock.ErrUnavailable, driver.ErrQuotaExceeded), 78},
		{both(zklock.ErrUnavailable, driver.ErrLocalSession), 78},
		{both(zklock.ErrNoAuth, driver.ErrAuthFailed), 78},
		{both(zklock.ErrNoAuth, driver.ErrNoAuth), 77},
		{zklock.ErrInvalidName, 64},
		{zklock.ErrConflict, 78},
		{zklock.ErrBadEnsemble, 78},
		{zklock.ErrLost, 76},
		{zklock.ErrMisuse, 125},
		{errors.New("other"), 125},
	} {
		if got := codeOf(&zklock.Error{Op: "acquire", Err: c.err}); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
	if got := asFailure(errors.New("unknown command")); got.code != 64 {
		t.Errorf("an error of cobra: %d", got.code)
	}
	if failed(nil) != nil || exit(0) != nil || asFailure(nil) != nil {
		t.Error("success is a failure")
	}
}
