package place

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/internal/errs"
)

// explain translates a driver's error, which has a definite outcome, into the errors of
// package errs, with the path that it is about.
func (c *Settings) explain(err error, path string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errs.ErrSessionOver), errors.Is(err, errs.ErrUnavailable), errors.Is(err, errs.ErrNotAcquired), errors.Is(err, errs.ErrClosed), errors.Is(err, errs.ErrNoAuth):
		return err // its text is complete
	case errors.Is(err, driver.ErrInvalidACL) && c.CreatorOnly:
		return fmt.Errorf("%w: %s: acl=creator gives znodes to the identity of their creator, and this client has none: put a user into the URL, or use a client certificate from which the servers derive an identity: %w", errs.ErrNoAuth, path, err)
	case errors.Is(err, driver.ErrNoAuth):
		return fmt.Errorf("%w %s: %s: %w", errs.ErrNoAuth, c.identityHint(), path, err)
	case errors.Is(err, driver.ErrAuthFailed), errors.Is(err, driver.ErrInvalidACL):
		return fmt.Errorf("%w: %s: %w", errs.ErrNoAuth, path, err)
	case errors.Is(err, driver.ErrReplyTooLarge):
		return fmt.Errorf("%s: there are more znodes below this path than one reply can list: remove some: %w", path, err)
	case errors.Is(err, driver.ErrQuotaExceeded):
		return fmt.Errorf("%s: the ensemble's quota for this path, or for one above it, is used up: raise it with setquota: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// logged returns a text for the log for a driver's error. Drivers' own texts contain
// paths, and so names of locks, which do not belong in the log.
func logged(err error) string {
	for _, known := range []error{driver.ErrNoAuth, driver.ErrAuthFailed, driver.ErrInvalidACL, driver.ErrBadVersion,
		driver.ErrNotEmpty, driver.ErrQuotaExceeded, driver.ErrTooLarge, driver.ErrReplyTooLarge, errs.ErrUnavailable} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "refused by the server"
}

// explainRights returns the error about missing rights. missing describes each of them.
func (c *Settings) explainRights(missing []string, cause error) error {
	return fmt.Errorf("%w %s: %s: %w", errs.ErrNoAuth, c.identityHint(), strings.Join(missing, "; "), cause)
}

// identityHint describes the identity of this client, for errors about a refusal.
func (c *Settings) identityHint() string {
	if c.User == "" {
		return "without a user in the URL"
	}
	return fmt.Sprintf("as user %q (or the password is wrong: ZooKeeper accepts any password, and compares it with access lists only)", c.User)
}

// tooMany returns the error of a contender that max_contenders does not allow.
func (c *Settings) tooMany() error {
	return fmt.Errorf("%w: the queue already has max_contenders=%d contenders", errs.ErrTooManyWaiters, c.MaxContenders)
}

// explainList translates an error of reading other contenders.
func (c *Settings) explainList(err error, dir string) error {
	if errors.Is(err, driver.ErrReplyTooLarge) {
		return c.explain(err, dir)
	}
	if errors.Is(err, driver.ErrNoAuth) {
		return fmt.Errorf("%w %s to read the contenders below %s, so this client cannot know whether they hold the lock: %w", errs.ErrNoAuth, c.identityHint(), dir, err)
	}
	return err
}
