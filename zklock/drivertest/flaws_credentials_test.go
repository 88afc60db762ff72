package drivertest_test

import (
	"context"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// endings are the flaws of connectors that end sessions by their credentials, by the names of the
// flaws.
var endings = map[string]func(ctx context.Context, c driver.SessionCloser, cred driver.Credentials) error{
	"a session is not ended by its credentials": func(context.Context, driver.SessionCloser, driver.Credentials) error {
		return nil
	},
	"a session is ended by any password": func(ctx context.Context, c driver.SessionCloser, cred driver.Credentials) error {
		return right(ctx, c, cred.ID)
	},
	"a session is ended although the context has": func(ctx context.Context, c driver.SessionCloser, cred driver.Credentials) error {
		if err := right(context.WithoutCancel(ctx), c, cred.ID); err != nil {
			return err
		}
		return ctx.Err()
	},
	"a session that is over cannot be ended": func(ctx context.Context, c driver.SessionCloser, cred driver.Credentials) error {
		err := c.CloseSession(ctx, cred)
		if seen[cred.ID]++; err == nil && seen[cred.ID] > 1 {
			return driver.ErrSessionExpired
		}
		return err
	},
}

// seen counts calls by session. The subtests of a flaw run one after another.
var seen = make(map[int64]int)

// passwordOf returns the password of a session of package memdriver.
func passwordOf(id int64) string { return "mem-" + strconv.FormatInt(id, 16) }

// right ends a session of package memdriver, whatever password the caller has.
func right(ctx context.Context, c driver.SessionCloser, id int64) error {
	return c.CloseSession(ctx, driver.Credentials{ID: id, Password: driver.NewSecret(passwordOf(id)), Timeout: 4 * time.Second})
}

func credentialsFlaws() []flaw {
	plain := func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session { return s }
	return []flaw{
		{"a session is not ended by its credentials", plain, []string{
			"credentials/end the session of another connector",
		}},
		{"a session is ended by any password", plain, []string{"credentials/with another password end nothing"}},
		{"a session is ended although the context has", plain, []string{"credentials/are not used after the context has ended"}},
		{"a session that is over cannot be ended", plain, []string{"credentials/end the session of another connector"}},
		{"credentials have another timeout", func(s driver.Session, _ driver.Connector, _ time.Duration) driver.Session {
			return hasty{s}
		}, []string{"credentials/of a session show its id and its timeout"}},
	}
}

// hasty shows credentials with a timeout that is too short.
type hasty struct{ driver.Session }

func (s hasty) Credentials() driver.Credentials {
	cred, _ := driver.CredentialsOf(s.Session)
	cred.Timeout /= 2
	return cred
}
