package zkdriver

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
)

// mechanismDigestMD5 is the registered name of the mechanism.
const mechanismDigestMD5 = "DIGEST-MD5"

// digestURI names the service. ZooKeeper's servers accept this one only.
const digestURI = "zookeeper/zk-sasl-md5"

// digestMD5 is the SASL mechanism DIGEST-MD5 (RFC 2831), without a security layer. It does not
// send the password, but a recording of the exchange is enough to guess it.
type digestMD5 struct{ creds *credentials }

func newDigestMD5(u driver.URL) (Mechanism, error) {
	if u.User == "" {
		return nil, fmt.Errorf("zkdriver: %s=%s needs a user in the URL", keySASL, saslDigestMD5)
	}
	if forbidsMD5() {
		return nil, fmt.Errorf("zkdriver: key %q: %s needs MD5, which GODEBUG=fips140=only forbids: use Kerberos with keys of SHA-2, a client certificate, or another mode of FIPS 140", keySASL, saslDigestMD5)
	}
	c, err := parseCredentials(u)
	if err != nil {
		return nil, err
	}
	return digestMD5{c}, nil
}

// forbidsMD5 reports whether this process panics if it uses MD5. Package fips140 says that only since Go 1.26.
func forbidsMD5() (forbidden bool) {
	defer func() { forbidden = recover() != nil }()
	_ = md5.Sum(nil)
	return false
}

// Name implements Mechanism.
func (digestMD5) Name() string { return mechanismDigestMD5 }

// Start implements Mechanism. It reads the password file again if there is one, so a changed
// password is used from the next connection on.
func (m digestMD5) Start(context.Context, string) (Exchange, error) {
	password, err := m.creds.reveal()
	if err != nil {
		return nil, err
	}
	return &digestExchange{user: m.creds.user, password: driver.NewSecret(password), uri: digestURI, cnonce: rand.Text()}, nil
}

// digestExchange implements Exchange.
type digestExchange struct {
	user     string
	password driver.Secret
	uri      string
	cnonce   string

	steps int
	want  []byte // the answer of a server that knows the password
}

// Step implements Exchange.
func (x *digestExchange) Step(challenge []byte) ([]byte, bool, error) {
	x.steps++
	switch x.steps {
	case 1:
		return []byte{}, false, nil
	case 2:
		response, err := x.respond(challenge)
		return response, false, err
	}
	if got, err := parseDirectives(challenge); err != nil || subtle.ConstantTimeCompare([]byte(got["rspauth"]), x.want) != 1 {
		return nil, false, errors.New("the server has not proven that it knows the password")
	}
	return nil, true, nil
}

// respond returns the response to the server's challenge.
func (x *digestExchange) respond(challenge []byte) ([]byte, error) {
	c, err := parseDirectives(challenge)
	switch {
	case err != nil || c["nonce"] == "":
		return nil, errors.New("the server's challenge is not one of DIGEST-MD5: it expects another mechanism, such as Kerberos")
	case c["algorithm"] != "md5-sess":
		return nil, errors.New("the server's challenge asks for another algorithm than md5-sess")
	case c["qop"] != "" && !offers(c["qop"], "auth"):
		return nil, errors.New("the server demands a security layer, which ZooKeeper does not have")
	case strings.ContainsAny(c["realm"]+c["nonce"], "\r\n"):
		return nil, errors.New("the server's challenge is malformed")
	}
	charset := func(s string) string { return s }
	var b bytes.Buffer
	if c["charset"] == "utf-8" {
		charset = latin1
		b.WriteString("charset=utf-8,")
	}
	secret := md5.Sum([]byte(charset(x.user) + ":" + charset(c["realm"]) + ":" + charset(x.password.Reveal())))
	session := md5.Sum(append(secret[:], ":"+c["nonce"]+":"+x.cnonce...))
	proof := func(method string) string {
		a2 := md5.Sum([]byte(method + ":" + x.uri))
		all := md5.Sum([]byte(hex.EncodeToString(session[:]) + ":" + c["nonce"] + ":00000001:" + x.cnonce + ":auth:" + hex.EncodeToString(a2[:])))
		return hex.EncodeToString(all[:])
	}
	x.want = []byte(proof(""))
	fmt.Fprintf(&b, `username=%s,realm=%s,nonce=%s,nc=00000001,cnonce="%s",digest-uri="%s",maxbuf=65536,response=%s,qop=auth`,
		quoted(x.user), quoted(c["realm"]), quoted(c["nonce"]), x.cnonce, x.uri, proof("AUTHENTICATE"))
	return b.Bytes(), nil
}

// offers reports whether a list, separated by commas, has an element.
func offers(list, element string) bool {
	for e := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(e) == element {
			return true
		}
	}
	return false
}

// latin1 encodes a text for the hash as RFC 2831 prescribes: in ISO 8859-1 if that has all of its
// characters, else in UTF-8.
func latin1(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		if r > 0xff {
			return s
		}
		b = append(b, byte(r))
	}
	return string(b)
}

// quoted makes a quoted string.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// parseDirectives parses a list of directives, name=value or name="value", separated by commas.
// Of a directive that is repeated, such as the realm, the first value is returned.
func parseDirectives(b []byte) (map[string]string, error) {
	malformed := errors.New("malformed directives")
	all := make(map[string]string)
	for rest := string(b); ; {
		rest = strings.TrimLeft(rest, ", \t\r\n")
		if rest == "" {
			return all, nil
		}
		name, after, ok := strings.Cut(rest, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, malformed
		}
		var value string
		if after = strings.TrimLeft(after, " \t"); strings.HasPrefix(after, `"`) {
			if value, rest, ok = unquote(after[1:]); !ok {
				return nil, malformed
			}
		} else {
			end := strings.IndexAny(after, ", \t\r\n")
			if end < 0 {
				end = len(after)
			}
			value, rest = after[:end], after[end:]
		}
		if _, repeated := all[name]; !repeated {
			all[name] = value
		}
	}
}

// unquote returns the content of a quoted string, and what follows its end. s begins behind
// the first quote.
func unquote(s string) (value, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			if i++; i == len(s) {
				return "", "", false
			}
		}
		b.WriteByte(s[i])
	}
	return "", "", false
}
