package zkdriver_test

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/fips"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// rfcChallenge is the challenge of the example in RFC 2831, section 4.
const rfcChallenge = `realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8`

// TestDigestMD5IsThatOfTheRFC checks the response, and the server's proof, against the example
// in RFC 2831.
func TestDigestMD5IsThatOfTheRFC(t *testing.T) {
	needsMD5(t)
	x := zkdriver.NewDigestExchange("chris", "secret", "imap/elwood.innosoft.com", "OA6MHXh6VqTrRk")
	if b, done, err := x.Step(nil); b == nil || len(b) != 0 || done || err != nil {
		t.Fatalf("the first step: %q, %v, %v, want an empty response", b, done, err)
	}
	b, done, err := x.Step([]byte(rfcChallenge))
	if err != nil || done {
		t.Fatalf("%v, %v", done, err)
	}
	got, err := zkdriver.ParseDirectives(b)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"charset": "utf-8", "username": "chris", "realm": "elwood.innosoft.com", "nonce": "OA6MG9tEQGm2hh", "nc": "00000001",
		"cnonce": "OA6MHXh6VqTrRk", "digest-uri": "imap/elwood.innosoft.com", "response": "d388dad90d4bbd760a152321f2143af7", "qop": "auth",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if b, done, err := x.Step([]byte("rspauth=ea40f60335c427b5527b84dbabcdfffd")); b != nil || !done || err != nil {
		t.Errorf("the server's proof: %q, %v, %v", b, done, err)
	}
}

// TestDigestMD5RefusesServers: a server that does not know the password, or asks for what the
// client does not do, is refused.
func TestDigestMD5RefusesServers(t *testing.T) {
	needsMD5(t)
	for name, c := range map[string]struct{ challenge, proof, says string }{
		"wrong proof":      {rfcChallenge, "rspauth=ea40f60335c427b5527b84dbabcdfffe", "has not proven"},
		"no proof":         {rfcChallenge, "", "has not proven"},
		"short proof":      {rfcChallenge, "rspauth=ea40", "has not proven"},
		"empty proof":      {rfcChallenge, "rspauth=", "has not proven"},
		"GSSAPI":           {"\x60\x82\x02\x00\x06\x09", "", "another mechanism"},
		"no nonce":         {`realm="r",algorithm=md5-sess`, "", "another mechanism"},
		"plain md5":        {`nonce="n",algorithm=md5`, "", "md5-sess"},
		"no algorithm":     {`nonce="n"`, "", "md5-sess"},
		"confidentiality":  {`nonce="n",qop="auth-conf",algorithm=md5-sess`, "", "security layer"},
		"open quote":       {`nonce="n`, "", "another mechanism"},
		"escape at end":    {`nonce="n\`, "", "another mechanism"},
		"line in realm":    {"realm=\"a\r\nb\",nonce=\"n\",algorithm=md5-sess", "", "malformed"},
		"directive only":   {"nonce", "", "another mechanism"},
		"no name":          {`="n"`, "", "another mechanism"},
		"empty challenge":  {"", "", "another mechanism"},
		"list of nothings": {",,, ,", "", "another mechanism"},
	} {
		x := zkdriver.NewDigestExchange("chris", "s3cret", "imap/elwood.innosoft.com", "OA6MHXh6VqTrRk")
		_, _, err := x.Step(nil)
		if err == nil {
			_, _, err = x.Step([]byte(c.challenge))
		}
		if err == nil {
			_, _, err = x.Step([]byte(c.proof))
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want an error with %q", name, err, c.says)
		}
	}
}

// TestDigestMD5Characters: RFC 2831 hashes user, realm and password in ISO 8859-1 if that has all
// of their characters, and in UTF-8 else; quotes and backslashes are escaped on the wire only.
func TestDigestMD5Characters(t *testing.T) {
	needsMD5(t)
	for _, c := range []struct{ user, password, charset, hashed string }{
		{"zoë", "grün", "charset=utf-8,", "zo\xeb:r:gr\xfcn"},
		{"zoë", "5€", "charset=utf-8,", "zo\xeb:r:5€"},
		{"zoë", "grün", "", "zoë:r:grün"},
		{`a"b\c`, `p"\`, "charset=utf-8,", `a"b\c:r:p"\`},
	} {
		x := zkdriver.NewDigestExchange(c.user, c.password, "imap/host", "cc")
		_, _, err1 := x.Step(nil)
		b, _, err2 := x.Step([]byte(c.charset + `realm="r",nonce="nn",algorithm=md5-sess`))
		got, err3 := zkdriver.ParseDirectives(b)
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
		sum := func(s string) string { h := md5.Sum([]byte(s)); return hex.EncodeToString(h[:]) }
		secret := md5.Sum([]byte(c.hashed))
		want := sum(sum(string(secret[:])+":nn:cc") + ":nn:00000001:cc:auth:" + sum("AUTHENTICATE:imap/host"))
		if got["response"] != want || got["username"] != c.user {
			t.Errorf("%q with %q: response %s of user %q, want %s", c.user, c.password, got["response"], got["username"], want)
		}
	}
}

// FuzzDigestMD5: whatever a server sends, the exchange ends within three steps, and only a server
// that has computed the proof is accepted.
func FuzzDigestMD5(f *testing.F) {
	needsMD5(f)
	f.Add([]byte(rfcChallenge), []byte("rspauth=ea40f60335c427b5527b84dbabcdfffd"))
	f.Add([]byte(`realm="a",realm="b",nonce="\"\\",qop="auth-int,auth",algorithm=md5-sess`), []byte(`rspauth="`))
	f.Add([]byte{0x60, 0x82}, []byte{})
	f.Fuzz(func(t *testing.T, challenge, proof []byte) {
		x := zkdriver.NewDigestExchange("chris", "secret", "imap/elwood.innosoft.com", "OA6MHXh6VqTrRk")
		if _, _, err := x.Step(nil); err != nil {
			t.Fatal(err)
		}
		b, done, err := x.Step(challenge)
		if err != nil {
			return
		}
		sent, err := zkdriver.ParseDirectives(b)
		if err != nil || done || strings.ContainsAny(string(b), "\r\n") {
			t.Fatalf("the challenge %q was answered with %q", challenge, b)
		}
		given, err := zkdriver.ParseDirectives(challenge)
		if err != nil || sent["nonce"] != given["nonce"] || sent["realm"] != given["realm"] {
			t.Fatalf("the challenge %q was answered with %q", challenge, b)
		}
		if _, done, err = x.Step(proof); (err == nil) != done {
			t.Fatalf("%v, %v", done, err)
		}
		if err == nil && !strings.Contains(string(proof), "rspauth") {
			t.Fatalf("%q was accepted", fmt.Sprint(proof))
		}
	})
}

// needsMD5 skips a test of DIGEST-MD5, or of SASL by means of it, in a process that may not use MD5.
func needsMD5(t testing.TB) {
	t.Helper()
	fips.Skip(t, "MD5")
}

// With GODEBUG=fips140=only, MD5 panics: the URL is refused. The mode is that of a process, so the test starts itself.
func TestDigestMD5UnderFIPS(t *testing.T) {
	if !fips.Only() {
		child := exec.Command(os.Args[0], "-test.run=^TestDigestMD5UnderFIPS$")
		child.Env = append(os.Environ(), "GODEBUG="+fips.Mode)
		if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	u := driver.URL{Scheme: "zk", Hosts: []string{"zk1"}, User: "shop", Password: driver.NewSecret("x"), Params: url.Values{"sasl": {"digest-md5"}}}
	if _, err := (zkdriver.Driver{}).OpenConnector(u); err == nil || !strings.Contains(err.Error(), "digest-md5 needs MD5, which GODEBUG=fips140=only forbids") {
		t.Error(err)
	}
}
