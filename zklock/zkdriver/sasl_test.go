package zkdriver_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

const opSASL = 102

// turns is a mechanism whose client says "one" and "two", in answer to whatever the server
// says. After last turns it is done; if it is silent then, it sends nothing with the last one.
type turns struct {
	name    string // "": TURNS
	last    int
	silent  bool
	start   func(ctx context.Context, host string) error // nil: no error
	started atomic.Int32
}

func (m *turns) Name() string { return cmp.Or(m.name, "TURNS") }

func (m *turns) Start(ctx context.Context, host string) (zkdriver.Exchange, error) {
	m.started.Add(1)
	if m.start != nil {
		if err := m.start(ctx, host); err != nil {
			return nil, err
		}
	}
	return &turn{m: m}, nil
}

type turn struct {
	m *turns
	n int
}

func (x *turn) Step(challenge []byte) ([]byte, bool, error) {
	if x.n++; x.n > 1 && challenge == nil {
		return nil, false, errors.New("a challenge was nil")
	}
	if string(challenge) == "bad" {
		return nil, false, errors.New("the challenge is bad")
	}
	if x.n == x.m.last && x.m.silent {
		return nil, true, nil
	}
	return []byte([]string{"", "one", "two", "three"}[x.n]), x.n == x.m.last, nil
}

// withSASL returns a URL that authenticates by a mechanism.
func withSASL(u driver.URL, m zkdriver.Mechanism) driver.URL {
	u.Options = append(u.Options, m)
	return u
}

// token returns the token in a request of an exchange; nil if it is null or missing.
func (r req) token() []byte {
	if r.op != opSASL || len(r.body) < 4 || int32(binary.BigEndian.Uint32(r.body)) != int32(len(r.body)-4) {
		return nil
	}
	return r.body[4:]
}

// null is a null token in a reply.
var null = []byte{0xff, 0xff, 0xff, 0xff}

// authenticated answers an exchange with one challenge after each token but the last.
func (l *link) authenticated(tokens ...string) bool {
	for i, want := range tokens {
		r, ok := l.read()
		if !ok || string(r.token()) != want || r.token() == nil {
			return false
		}
		if i == len(tokens)-1 {
			l.replyAt(0, r, 0, null)
		} else {
			l.replyAt(0, r, 0, str("challenge"))
		}
	}
	return true
}

// TestSASLComesFirst: on each connection of a session the exchange comes before all else:
// credentials of the scheme digest, watches, and requests that wait.
func TestSASLComesFirst(t *testing.T) {
	needsMD5(t)
	const reconnects = 5
	for name, c := range map[string]struct {
		url  func(driver.URL) driver.URL
		want []int32
	}{
		"alone":     {func(u driver.URL) driver.URL { return u }, []int32{opSASL, opSASL, opSetWatch}},
		"with user": {withUser, []int32{opSASL, opSASL, opAuth, opSetWatch}},
	} {
		t.Run(name, func(t *testing.T) {
			first := make(chan int32, 100)
			p := newPeer(t, func(l *link) {
				l.greet(sid)
				for i := 0; ; i++ {
					r, ok := l.read()
					if !ok {
						return
					}
					if l.n > 1 && i < len(c.want) {
						first <- r.op
					}
					if r.op != opSASL {
						l.succeed(r)
					} else if string(r.token()) == "one" {
						l.replyAt(0, r, 0, str(""))
					} else {
						l.replyAt(0, r, 0, null)
					}
				}
			})
			s := connect(t, c.url(withSASL(p.url(), &turns{last: 2})))
			ctx, cancel := context.WithCancel(context.Background())
			if _, _, err := s.Watch(ctx, "/watched"); err != nil {
				t.Fatal(err)
			}
			var load sync.WaitGroup
			defer load.Wait()
			defer cancel()
			for range 4 {
				load.Go(func() {
					for ctx.Err() == nil {
						_ = s.Sync(ctx, "/")
					}
				})
			}
			for range reconnects {
				p.drop()
				for i, op := range c.want {
					if got := recv(t, first); got != op {
						t.Fatalf("request %d on a new connection is %d, want %d", i, got, op)
					}
				}
			}
		})
	}
}

// TestSASLTokens: the tokens on the wire are those of the mechanism. Nothing is sent if it is
// done and silent; else the server has to confirm success.
func TestSASLTokens(t *testing.T) {
	needsMD5(t)
	for name, c := range map[string]struct {
		m     *turns
		wants []string
	}{
		"one token":                             {&turns{last: 1}, []string{"one"}},
		"two tokens":                            {&turns{last: 2}, []string{"one", "two"}},
		"the server ends":                       {&turns{last: 3, silent: true}, []string{"one", "two"}},
		"a mechanism that is there for nothing": {&turns{last: 1, silent: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, func(l *link) {
				l.greet(sid)
				for _, want := range c.wants {
					r, ok := l.read()
					if !ok || r.token() == nil || string(r.token()) != want {
						t.Errorf("request %+v, want the token %q", r, want)
						return
					}
					l.replyAt(0, r, 0, str("")) // an empty token differs from a null token
				}
				for {
					r, ok := l.read()
					if !ok {
						return
					}
					if r.op == opSASL {
						t.Errorf("another token: %q", r.body)
					}
					l.succeed(r)
				}
			})
			s := connect(t, withSASL(p.url(), c.m))
			if err := s.Sync(within(t, 5*time.Second), "/"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSASLRefusals: each refusal of a server ends Connect at once with ErrAuthFailed and a text
// that says what to do, after one connection.
func TestSASLRefusals(t *testing.T) {
	needsMD5(t)
	answer := func(code int32, token []byte) func(*link, req) {
		return func(l *link, r req) { l.replyAt(0, r, code, token) }
	}
	digest := func(u driver.URL) driver.URL {
		u.User, u.Password, u.Params = "al", driver.NewSecret("s3cret"), map[string][]string{"sasl": {"digest-md5"}}
		return u
	}
	with := func(m *turns) func(driver.URL) driver.URL {
		return func(u driver.URL) driver.URL { return withSASL(u, m) }
	}
	challenge := answer(0, str(`realm="zk-sasl-md5",nonce="nn",charset=utf-8,algorithm=md5-sess`))
	for name, c := range map[string]struct {
		url     func(driver.URL) driver.URL
		answers []func(*link, req)
		says    string
	}{
		"no SASL at the server":      {digest, []func(*link, req){answer(0, null)}, "has no SASL"},
		"refused and allowed":        {with(&turns{last: 2}), []func(*link, req){answer(0, null)}, "allowSaslFailedClients hides that"},
		"another mechanism":          {digest, []func(*link, req){answer(-115, null)}, "fips-mode"},
		"another one, required":      {digest, []func(*link, req){answer(-124, null)}, "fips-mode"},
		"wrong password":             {digest, []func(*link, req){challenge, answer(-115, null)}, "password is wrong"},
		"wrong password, required":   {digest, []func(*link, req){challenge, answer(-124, null)}, "password is wrong"},
		"no token at all":            {digest, []func(*link, req){challenge, answer(-115, nil)}, "password is wrong"},
		"allowed nevertheless":       {digest, []func(*link, req){challenge, answer(0, null)}, "without an identity"},
		"server without the secret":  {digest, []func(*link, req){challenge, answer(0, str("rspauth=00112233445566778899aabbccddeeff"))}, "has not proven"},
		"Kerberos' challenge":        {digest, []func(*link, req){answer(0, str("\x60\x20"))}, "Kerberos"},
		"another code":               {with(&turns{last: 2}), []func(*link, req){answer(-6, null)}, "code -6"},
		"refused at the end":         {with(&turns{last: 1}), []func(*link, req){answer(-115, null)}, "TURNS"},
		"another server's ticket":    {with(&turns{name: "GSSAPI", last: 2}), []func(*link, req){answer(-115, null)}, "a host of its own"},
		"the mechanism has an error": {with(&turns{last: 2}), []func(*link, req){answer(0, str("bad"))}, "the challenge is bad"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
				p := virtual(n, 0, func(l *link) {
					l.greet(sid)
					for _, answer := range c.answers {
						r, ok := l.read()
						if !ok || r.op != opSASL {
							t.Errorf("request %+v, want one of the exchange", r)
							return
						}
						answer(l, r)
					}
					if r, ok := l.read(); ok {
						t.Errorf("request %d after the refusal", r.op)
					}
				})
				began := time.Now()
				_, err := open(t, c.url(p.url())).Connect(within(t, 10*time.Second), time.Minute)
				if took := time.Since(began); took > 0 {
					t.Errorf("Connect took %v, want no pause for another attempt", took)
				}
				matches(t, err, driver.ErrAuthFailed, driver.ErrNotSent)
				if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("%v, want an error with %q", err, c.says)
				}
				if n := p.accepted(); n != 1 {
					t.Errorf("%d connections, want 1", n)
				}
			})
		})
	}
}

// TestSASLWithoutAnAnswer: a server that closes the connection in the exchange, or does not
// answer, is tried again: it may be starting. Connect ends with its context.
func TestSASLWithoutAnAnswer(t *testing.T) {
	needsMD5(t)
	for name, do := range map[string]func(*link){
		"closes": func(l *link) { l.read() },
		"hangs":  func(l *link) { l.read(); l.read() },
		"malformed": func(l *link) {
			if r, ok := l.read(); ok {
				l.replyAt(0, r, 0, []byte{0, 0, 1, 0, 'x'})
			}
		},
		"another reply": func(l *link) {
			if r, ok := l.read(); ok {
				r.xid++
				l.replyAt(0, r, 0, null)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(within(t, 30*time.Second))
			defer cancel()
			var began atomic.Bool // the exchange of one connection; a question for the status has none
			p := newPeer(t, func(l *link) {
				if began.Load() {
					cancel()
				}
				if _, ok := l.greet(sid); ok {
					began.Store(true)
				}
				do(l)
			})
			// With such a short session timeout, each attempt has one second.
			_, err := open(t, withSASL(p.url(), &turns{last: 2})).Connect(ctx, 2*time.Second)
			if err == nil || !strings.Contains(err.Error(), "SASL") || errors.Is(err, driver.ErrAuthFailed) {
				t.Errorf("%v, want an error about SASL, and not a refusal", err)
			}
			if n := p.accepted(); n < 2 {
				t.Errorf("%d connections, want several", n)
			}
		})
	}
}

// TestSASLStartFails: without tickets nothing is dialled, since the handshake alone would prolong
// a session. An error that another attempt cannot help against ends Connect.
func TestSASLStartFails(t *testing.T) {
	needsMD5(t)
	p := newPeer(t, (*link).work)
	var hosts sync.Map
	m := &turns{start: func(_ context.Context, host string) error {
		hosts.Store(host, true)
		return fmt.Errorf("no such principal (%w)", driver.ErrAuthFailed)
	}}
	_, err := open(t, withSASL(p.url(), m)).Connect(within(t, 10*time.Second), 4*time.Second)
	matches(t, err, driver.ErrAuthFailed, driver.ErrNotSent)
	if err == nil || !strings.Contains(err.Error(), "SASL (TURNS): no such principal") {
		t.Error(err)
	}
	if _, ok := hosts.Load("127.0.0.1"); !ok {
		t.Error("the mechanism was not given the host")
	}
	u := p.url()
	u.Hosts = []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"}
	tried := 0
	_, err = open(t, withSASL(u, &turns{start: func(context.Context, string) error {
		if tried++; tried == 2 {
			return fmt.Errorf("another (%w)", driver.ErrAuthFailed)
		}
		return fmt.Errorf("the keytab is empty (%w)", driver.ErrAuthFailed)
	}})).Connect(within(t, 10*time.Second), 4*time.Second)
	matches(t, err, driver.ErrAuthFailed, driver.ErrNotSent)
	if err == nil || strings.Count(err.Error(), "the keytab is empty") != 1 || strings.Count(err.Error(), "another") != 1 || strings.Count(err.Error(), " and 127.0.0.1:") != 1 {
		t.Errorf("%v, want each reason once", err)
	}
	for _, host := range u.Hosts {
		if err == nil || strings.Count(err.Error(), host) != 1 {
			t.Errorf("%v, want %s once", err, host)
		}
	}
	ctx, cancel := context.WithCancel(within(t, 10*time.Second))
	down := &turns{}
	down.start = func(context.Context, string) error {
		if down.started.Load() == 3 {
			cancel()
		}
		return errors.New("no KDC answers")
	}
	_, err = open(t, withSASL(p.url(), down)).Connect(ctx, 4*time.Second)
	matches(t, err, context.Canceled)
	if err == nil || !strings.Contains(err.Error(), "no KDC answers") {
		t.Error(err)
	}
	if n := p.accepted(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
}

// TestSASLStartEndsWithTheSession: a mechanism that waits for its tickets does not outlast its
// session.
func TestSASLStartEndsWithTheSession(t *testing.T) {
	needsMD5(t)
	p := newPeer(t, (*link).work)
	m := &turns{start: func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }}
	began := time.Now()
	_, err := open(t, withSASL(p.url(), m)).Connect(within(t, 100*time.Millisecond), 4*time.Second)
	matches(t, err, context.DeadlineExceeded)
	if took := time.Since(began); took > atOnce {
		t.Errorf("Connect took %v", took)
	}
}

// TestChangedPasswordIsUsedForTheNextConnection: the password file is read for each connection.
func TestChangedPasswordIsUsedForTheNextConnection(t *testing.T) {
	needsMD5(t)
	responses := make(chan string, 10)
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		r, _ := l.read()
		l.replyAt(0, r, 0, str(`realm="zk-sasl-md5",nonce="nn",charset=utf-8,algorithm=md5-sess`))
		if r, ok := l.read(); ok {
			d, _ := zkdriver.ParseDirectives(r.token())
			for _, password := range []string{"one", "two"} {
				x := zkdriver.NewDigestExchange("al", password, "zookeeper/zk-sasl-md5", d["cnonce"])
				_, _, _ = x.Step(nil)
				b, _, _ := x.Step([]byte(`realm="zk-sasl-md5",nonce="nn",charset=utf-8,algorithm=md5-sess`))
				if bytes.Equal(b, r.token()) {
					responses <- password
				}
			}
		}
	})
	file := filepath.Join(t.TempDir(), "password")
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	u := p.url()
	u.User, u.Params = "al", map[string][]string{"sasl": {"digest-md5"}, "password_file": {file}}
	c := open(t, u)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.Connect(ctx, 4*time.Second)
	}()
	if got := recv(t, responses); got != "one" {
		t.Errorf("the password is %q", got)
	}
	write("two\n")
	for recv(t, responses) != "two" { // an attempt may have begun before the change
	}
	cancel()
	recv(t, ended)
}

// TestSASLOptions: what the URL and the options may say.
func TestSASLOptions(t *testing.T) {
	needsMD5(t)
	zkdriver.RegisterSASL("turns", func(u driver.URL) (zkdriver.Mechanism, error) {
		if u.User == "" {
			return nil, errors.New("needs a user")
		}
		return &turns{last: 1}, nil
	})
	set := func(sasl, user, password string, options ...any) driver.URL {
		u := driver.URL{Scheme: "zk", Hosts: []string{"zk1"}, User: user, Password: driver.NewSecret(password), Options: options}
		if sasl != "" {
			u.Params = map[string][]string{"sasl": {sasl}}
		}
		return u
	}
	t.Setenv("ZKLOCK_PASSWORD", "")
	for _, c := range []struct {
		u    driver.URL
		want string // part of the error; "": there is none
	}{
		{set("digest-md5", "al", "s3cret"), ""}, // the password does not leave this process
		{set("digest-md5", "", ""), "needs a user"},
		{set("digest-md5", "al", ""), "no password"},
		{set("digest-md5", "a:l", "s3cret"), "colon"},
		{set("turns", "al", ""), ""},
		{set("turns", "", ""), `key "sasl": needs a user`},
		{set("plain", "al", "s3cret"), "known: digest-md5, turns"},
		{set("kerberos", "", ""), "contrib/kerberos"},
		{set("digest_md5", "al", "s3cret"), `the mechanism is not known: did you mean "digest-md5"? (known: digest-md5, turns)`},
		{set("kerbros", "al", "s3cret"), `did you mean "kerberos"? (known: digest-md5, turns): kerberos needs the import`},
		{set("turn", "al", "s3cret"), `did you mean "turns"?`},
		{set("", "", "", &turns{}), ""},
		{set("", "al", "s3cret", &turns{}), "unencrypted"}, // the scheme digest sends it
		{set("turns", "al", "", &turns{}), "both"},
		{set("", "", "", 7), "type int"},
	} {
		connector, err := zkdriver.Driver{}.OpenConnector(c.u)
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%+v: %v, want %q", c.u, err, c.want)
		}
		if connector != nil {
			_ = connector.Close()
		}
	}
	for name, open := range map[string]func(driver.URL) (zkdriver.Mechanism, error){"turns": func(driver.URL) (zkdriver.Mechanism, error) { return nil, nil }, "other": nil} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was registered: twice, or without a function", name)
				}
			}()
			zkdriver.RegisterSASL(name, open)
		}()
	}
}

// FuzzSASL: whatever a server sends in an exchange, Connect ends, takes no memory that a length
// claims, and never opens a session without success. The input is what the server sends after
// the handshake, with its frames' xids corrected.
func FuzzSASL(f *testing.F) {
	needsMD5(f)
	reply := func(code int32, token []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(16+len(token)))
		b = append(b, make([]byte, 12)...)
		b = binary.BigEndian.AppendUint32(b, uint32(code))
		return append(b, token...)
	}
	f.Add(slices.Concat(reply(0, str("c")), reply(0, null)))
	f.Add(slices.Concat(reply(0, str("c")), reply(0, str("c")), reply(0, str(""))))
	f.Add(reply(-115, null))
	f.Add(reply(0, []byte{0x7f, 0xff, 0xff, 0xff}))
	f.Add(reply(0, []byte{0, 0, 0, 2, 'x'}))
	f.Add(reply(0, nil))
	f.Add([]byte{0x03, 0xff, 0xff, 0xff, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		b = bytes.Clone(b)
		for at := 0; len(b)-at >= 8; {
			n := int(binary.BigEndian.Uint32(b[at:]))
			copy(b[at+4:], []byte{0xff, 0xff, 0xff, 0xf9}) // the driver's xid
			if n > len(b) {
				break
			}
			at += 4 + n
		}
		p := newPeer(t, func(l *link) {
			l.greet(sid)
			_, _ = l.Write(b)
			for {
				r, ok := l.read()
				if !ok {
					return
				}
				if r.op != opSASL && r.op != opClose {
					t.Errorf("request %d", r.op)
				}
			}
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		s, err := open(t, withSASL(p.url(), &turns{last: 3})).Connect(ctx, 4*time.Second)
		if err == nil {
			shut(s)
			if len(b) < 3*20 {
				t.Fatalf("%d bytes are fewer than three replies, and opened a session", len(b))
			}
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > hostileMemory {
			t.Fatalf("%d bytes took %d of memory", len(b), after.TotalAlloc-before.TotalAlloc)
		}
	})
}
