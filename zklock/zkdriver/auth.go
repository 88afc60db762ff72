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

// credentials are a user, of ZooKeeper's digest scheme or of the SASL mechanism DIGEST-MD5, and
// the password, or the file that has the password.
type credentials struct {
	user     string
	password driver.Secret
	file     string // "" if the password is not in a file
}

// parseCredentials finds the user and the source of the password: the URL, the file
// of password_file, or the environment. It returns nil if the URL has no user.
func parseCredentials(u driver.URL) (*credentials, error) {
	file := u.Params.Get(keyPasswordFile)
	if u.User == "" {
		if !u.Password.IsZero() {
			return nil, errors.New("zkdriver: the URL has a password but no user: put the user before the colon, as in user:password@")
		}
		if file != "" {
			return nil, fmt.Errorf("zkdriver: key %q needs a user in the URL", keyPasswordFile)
		}
		return nil, nil
	}
	if strings.Contains(u.User, ":") {
		return nil, errors.New("zkdriver: the user name has a colon in it, which the digest scheme and DIGEST-MD5 do not allow")
	}
	c := &credentials{user: u.User, password: u.Password, file: file}
	switch {
	case file != "" && !u.Password.IsZero():
		return nil, fmt.Errorf("zkdriver: both the URL and key %s give a password for user %q: use one of them", keyPasswordFile, u.User)
	case file != "":
		if _, err := c.digest(); err != nil {
			return nil, err
		}
	case u.Password.IsZero():
		c.password = driver.NewSecret(os.Getenv(passwordEnv))
		if c.password.IsZero() {
			// The error does not show the user: if the colon was forgotten or
			// mistyped, the password is part of it.
			return nil, fmt.Errorf("zkdriver: the URL has a user but no password: put it after a colon (user:password@), in the file of key %s, or in the environment variable %s",
				keyPasswordFile, passwordEnv)
		}
	}
	return c, nil
}

// digest returns the data that the digest scheme sends. A changed password file is used from
// the next session on.
func (c *credentials) digest() ([]byte, error) {
	password, err := c.reveal()
	return []byte(c.user + ":" + password), err
}

// reveal returns the password. It reads the password file again if there is one.
func (c *credentials) reveal() (string, error) {
	if c.file == "" {
		return c.password.Reveal(), nil
	}
	data, err := readFile(keyPasswordFile, c.file)
	if err != nil {
		return "", err
	}
	password := strings.TrimRight(string(data), "\r\n")
	if password == "" {
		return "", fmt.Errorf("zkdriver: key %q: %s is empty: write the password into it", keyPasswordFile, fileShown(keyPasswordFile, c.file))
	}
	return password, nil
}

// authenticate adds the credentials to the session. When it returns nil, they apply
// to every connection that the session will ever have.
//
// The client stores credentials only after the server has accepted them. At each
// reconnect it presents the stored credentials before any other request. If a
// connection breaks between the server's answer and the storing, the next connection
// is without identity. The generation shows that. If it is the same before and after,
// the storing was complete before the next reconnect, so no connection can lack the
// credentials. If it is not, authenticate repeats the call.
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

// lost reports whether an error means only that a connection broke.
func lost(err error) bool {
	return errors.Is(err, driver.ErrConnLoss) || errors.Is(err, driver.ErrNotSent)
}
