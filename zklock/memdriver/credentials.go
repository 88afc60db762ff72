package memdriver

import (
	"context"
	"errors"
	"strconv"

	"github.com/zklock/go-zklock/zklock/driver"
)

var (
	_ driver.Credentialed  = (*session)(nil)
	_ driver.SessionCloser = (*connector)(nil)
)

// password returns the password of a session. It is not a secret: a program that has
// the ensemble can do everything with it.
func password(id int64) string { return "mem-" + strconv.FormatInt(id, 16) }

// Credentials implements [driver.Credentialed].
func (s *session) Credentials() driver.Credentials {
	return driver.Credentials{ID: s.id, Password: driver.NewSecret(s.password), Timeout: s.Timeout()}
}

// CloseSession implements [driver.SessionCloser].
func (c *connector) CloseSession(ctx context.Context, cred driver.Credentials) error {
	if err := ctx.Err(); err != nil {
		return &opError{"close session", "", err}
	}
	s, err := c.start(cred.Timeout, hello{session: cred.ID, password: cred.Password.Reveal()})
	if err != nil {
		return err
	}
	owned, err := c.establish(ctx, s)
	switch {
	case errors.Is(err, driver.ErrSessionExpired):
		return nil
	case err != nil:
		return err
	}
	return owned.Close(ctx)
}
