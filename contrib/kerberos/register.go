package kerberos

import (
	"errors"
	"os"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

func init() { zkdriver.RegisterSASL("kerberos", fromURL) }

// fromURL makes the mechanism of a URL, with the identity from the environment. It reads the
// files once, so that mistakes show early.
func fromURL(u driver.URL) (zkdriver.Mechanism, error) {
	if !u.Password.IsZero() || u.Params.Get("password_file") != "" {
		return nil, errors.New("kerberos uses no password: name a keytab by KRB5_CLIENT_KTNAME, or run kinit")
	}
	var s settings
	cfg, err := s.load()
	if err != nil {
		return nil, err
	}
	if name := os.Getenv("KRB5_CLIENT_KTNAME"); name != "" {
		file := strings.TrimPrefix(name, "FILE:")
		if _, err := loadKeytab(file); err != nil {
			return nil, err
		}
		return Keytab(u.User, file), nil
	}
	t, err := loadCache("")
	if err != nil {
		return nil, err
	}
	if u.User != "" {
		want, err := parsePrincipal(u.User, cfg)
		if err != nil {
			return nil, err
		}
		if want.String() != t.client.String() {
			return nil, errors.New("the credential cache is of " + t.client.String() + ", and the URL's user is " + want.String())
		}
	}
	return newMechanism(&cacheSource{principal: t.client.String()}, nil), nil
}
