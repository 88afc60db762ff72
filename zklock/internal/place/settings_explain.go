package place

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// explain gives a driver's definite error its meaning in the terms of package errs.
func (c *Settings) explain(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errs.ErrSessionOver), errors.Is(err, errs.ErrUnavailable), errors.Is(err, errs.ErrNotAcquired), errors.Is(err, errs.ErrClosed), errors.Is(err, errs.ErrNoAuth):
		return err // it says all by itself
	case errors.Is(err, driver.ErrInvalidACL) && c.CreatorOnly:
		return fmt.Errorf("%w: %s: acl=creator gives znodes to the identity of their creator, and this client has none: put a user into the URL, or use a client certificate that the servers make an identity of: %w", errs.ErrNoAuth, path, err)
	case errors.Is(err, driver.ErrNoAuth):
		return fmt.Errorf("%w %s: %s: %w", errs.ErrNoAuth, c.identityHint(), path, err)
	case errors.Is(err, driver.ErrAuthFailed), errors.Is(err, driver.ErrInvalidACL):
		return fmt.Errorf("%w: %s: %w", errs.ErrNoAuth, path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// logged says what a driver's error means, for the log: drivers' own texts have
// paths in them, and so names of locks.
func logged(err error) string {
	for _, known := range []error{driver.ErrNoAuth, driver.ErrAuthFailed, driver.ErrInvalidACL, driver.ErrBadVersion,
		driver.ErrNotEmpty, driver.ErrQuotaExceeded, driver.ErrTooLarge, errs.ErrUnavailable} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "refused by the server"
}

// explainRights is the error of rights that are missing.
func (c *Settings) explainRights(missing []string, cause error) error {
	return fmt.Errorf("%w %s: %s: %w", errs.ErrNoAuth, c.identityHint(), strings.Join(missing, "; "), cause)
}

// identityHint says as whom a client comes that is refused.
func (c *Settings) identityHint() string {
	if c.User == "" {
		return "without a user in the URL"
	}
	return fmt.Sprintf("as user %q (or the password is wrong: ZooKeeper takes any, and compares it with access lists only)", c.User)
}

// explainList gives the errors of reading other contenders their meaning.
func (c *Settings) explainList(err error, dir string) error {
	if errors.Is(err, driver.ErrNoAuth) {
		return fmt.Errorf("%w %s to read the contenders below %s, so it cannot be told whether they hold the lock: %w", errs.ErrNoAuth, c.identityHint(), dir, err)
	}
	return err
}
