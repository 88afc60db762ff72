package zkdriver_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// everyError calls f for an error and for all errors that it wraps, in both ways of
// wrapping.
func everyError(err error, f func(error)) {
	if err == nil {
		return
	}
	f(err)
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		everyError(u.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			everyError(e, f)
		}
	}
}

// A secret may be put where the path of its file belongs, or where no secret belongs.
// No error shows it. A value that can only be a path is shown.
func TestMisplacedSecretsAreNotShown(t *testing.T) {
	t.Setenv("ZKLOCK_PASSWORD", "")
	const canary = "hunter2"
	dir := t.TempDir()
	t.Chdir(dir)
	for _, d := range []string{"taken", "below"} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	pki := newPKI(t, "localhost")
	for name, content := range map[string]string{"empty": "", "below/empty": "", "cert.pem": string(pki.cert)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	password := func(value string) driver.URL {
		return driver.URL{Scheme: "zk", Hosts: []string{"localhost"}, User: "al", Params: url.Values{"password_file": {value}}}
	}
	key := func(value string) driver.URL {
		return driver.URL{Scheme: "zks", Hosts: []string{"localhost"}, Params: url.Values{"tls_cert": {"cert.pem"}, "tls_key": {value}}}
	}
	tls := func(pairs ...string) driver.URL {
		u := driver.URL{Scheme: "zks", Hosts: []string{"localhost"}, Params: url.Values{}}
		for i := 0; i < len(pairs); i += 2 {
			u.Params.Set(pairs[i], pairs[i+1])
		}
		return u
	}
	bit := func(k string) driver.URL {
		return driver.URL{Scheme: "zks", Hosts: []string{"localhost"}, Params: url.Values{k: {canary}}}
	}
	for _, c := range []struct {
		u      driver.URL
		says   string
		reason error // that the error matches
		hidden []string
	}{
		{password(canary), `"password_file"`, fs.ErrNotExist, []string{canary}},
		{password("/" + canary), `"password_file"`, fs.ErrNotExist, []string{canary}},
		{password("./" + canary), `"password_file"`, fs.ErrNotExist, []string{canary}},
		{password("../" + canary), `"password_file"`, fs.ErrNotExist, []string{canary}},
		{password(canary + "/" + canary), `"password_file"`, fs.ErrNotExist, []string{canary}},
		{password("/" + canary + "/x=="), `"password_file"`, fs.ErrNotExist, []string{canary, "x=="}},
		{password("empty"), "is empty", nil, []string{": empty"}},
		{password("taken"), `"password_file"`, nil, []string{"taken"}}, // a directory
		{password(canary + "\x00"), `"password_file"`, nil, []string{canary}},
		{password(strings.Repeat(canary, 1000)), `"password_file"`, nil, []string{canary}},
		{password(filepath.Join(dir, "none")), filepath.Join(dir, "none"), fs.ErrNotExist, nil},
		{password("below/none"), "below/none", fs.ErrNotExist, nil},
		{password("below/empty"), "below/empty is empty", nil, nil},
		{key(string(pki.key)), `"tls_key"`, nil, []string{"PRIVATE", string(pki.key)[60:90]}},
		{key(filepath.Join(dir, "none")), filepath.Join(dir, "none"), fs.ErrNotExist, nil},
		{bit("auth_plaintext"), `"auth_plaintext"`, nil, []string{canary}},
		{bit("tls_insecure_skip_verify"), `"tls_insecure_skip_verify"`, nil, []string{canary}},
		{tls("tls_ca", string(pki.key)), `"tls_ca"`, nil, []string{"PRIVATE", string(pki.key)[60:90]}},
		{tls("tls_cert", string(pki.key), "tls_key", "cert.pem"), `"tls_cert"`, nil, []string{"PRIVATE", string(pki.key)[60:90]}},
		{tls("tls_ca", "zk://svc:"+canary+"@zk1"), `"tls_ca"`, nil, []string{canary}},
		{tls("tls_ca", "none"), `"tls_ca": none: no such file`, fs.ErrNotExist, nil},
		{tls("tls_ca", "empty"), `empty contains no PEM certificate`, nil, nil},
		{tls("sasl", "zk://svc:"+canary+"@zk1"), `"sasl"`, nil, []string{canary}},
		{tls("zk://svc:"+canary+"@zk1", "1"), "unknown key", nil, []string{canary}},
		{driver.URL{Scheme: "zk://svc:" + canary + "@zk1"}, "use zk or zks", nil, []string{canary}},
		{driver.URL{Scheme: "zk", Hosts: []string{"svc:" + canary + "@zk1"}}, "host 1 of the list", nil, []string{canary}},
		{driver.URL{Scheme: "zk", Hosts: []string{"zk1", canary + "@zk1"}}, "host 2 of the list", nil, []string{canary}},
		{driver.URL{Scheme: "zk", Hosts: []string{"zk://svc:" + canary + "@zk1"}}, "host 1 of the list", nil, []string{canary}},
		{driver.URL{Scheme: "zk", Hosts: []string{"zk1"}, User: "svc:" + canary}, "colon", nil, []string{canary}},
	} {
		conn, err := zkdriver.Driver{}.OpenConnector(c.u)
		if err == nil {
			_ = conn.Close()
			t.Errorf("%v is accepted", c.u.Params)
			continue
		}
		if !strings.Contains(err.Error(), c.says) || c.reason != nil && !errors.Is(err, c.reason) {
			t.Errorf("%.80v: error %v, want one that contains %q and matches %v", c.u.Params, err, c.says, c.reason)
		}
		if strings.ContainsAny(err.Error(), "\r\n") {
			t.Errorf("%.80v: the error has several lines: %v", c.u.Params, err)
		}
		everyError(err, func(e error) {
			for _, secret := range c.hidden {
				if text := fmt.Sprintf("%v %+v %#v %s %q", e, e, e, e, e); strings.Contains(text, secret) {
					t.Errorf("%.80v: an error of type %T shows the secret: %s", c.u.Params, e, text)
				}
			}
		})
	}
}
