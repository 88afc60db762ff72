package zkdriver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// credentials is a user of ZooKeeper's digest scheme, with the password or the
// file to read it from.
type credentials struct {
	user     string
	password driver.Secret
	file     string // "" unless the password is in a file
}

// parseCredentials finds the user and where the password is: in the URL, in
// the file of password_file or in the environment. nil means nobody.
func parseCredentials(u driver.URL) (*credentials, error) {
	file := u.Params.Get(keyPasswordFile)
	if u.User == "" {
		if !u.Password.IsZero() {
			return nil, errors.New("zkdriver: the URL has a password but no user")
		}
		if file != "" {
			return nil, fmt.Errorf("zkdriver: key %q needs a user in the URL", keyPasswordFile)
		}
		return nil, nil
	}
	if strings.Contains(u.User, ":") {
		return nil, fmt.Errorf("zkdriver: user %q: the digest scheme allows no colon in a user name", u.User)
	}
	c := &credentials{user: u.User, password: u.Password, file: file}
	switch {
	case file != "" && !u.Password.IsZero():
		return nil, fmt.Errorf("zkdriver: both the URL and %s give a password for user %q", keyPasswordFile, u.User)
	case file != "":
		if _, err := c.digest(); err != nil {
			return nil, err
		}
	case u.Password.IsZero():
		c.password = driver.NewSecret(os.Getenv(passwordEnv))
		if c.password.IsZero() {
			// The user is not shown: where the colon was forgotten or mistyped, the
			// password is part of it.
			return nil, fmt.Errorf("zkdriver: the URL has a user and no password: give one behind a colon, as user:password@, by %s or in the environment as %s",
				keyPasswordFile, passwordEnv)
		}
	}
	return c, nil
}

// digest returns what the digest scheme sends, reading the password file
// again if there is one: a rotated password counts from the next session on.
func (c *credentials) digest() ([]byte, error) {
	password := c.password.Reveal()
	if c.file != "" {
		data, err := readFile(keyPasswordFile, c.file)
		if err != nil {
			return nil, err
		}
		password = strings.TrimRight(string(data), "\r\n")
		if password == "" {
			return nil, fmt.Errorf("zkdriver: key %q: %s is empty", keyPasswordFile, fileShown(keyPasswordFile, c.file))
		}
	}
	return []byte(c.user + ":" + password), nil
}

// authenticate adds the credentials to the session. It returns when they hold
// for every connection the session will ever have.
//
// The client stores credentials only once the server has accepted them, and
// presents what is stored at each reconnect before any other request. A
// connection that breaks between the server's answer and the storing would be
// followed by one without identity. The generation tells: if it is the same
// before and after, the storing was over before the next reconnect, so no
// connection can lack them; if not, once more.
//
// add is AddAuth with these credentials.
func (s *session) authenticate(ctx context.Context, add func(*zk.Conn) error) error {
	for {
		before, _ := s.Conn()
		_, err := run(ctx, s, call{op: "authenticate", auth: true}, func(c *zk.Conn) (struct{}, error) {
			return struct{}{}, add(c)
		})
		after, _ := s.Conn()
		switch {
		case err == nil && before == after:
			return nil
		case err == nil, ctx.Err() == nil && lost(err):
			continue
		}
		return err
	}
}

// lost reports whether an error says no more than that a connection broke.
func lost(err error) bool {
	return errors.Is(err, driver.ErrConnLoss) || errors.Is(err, driver.ErrNotSent)
}
