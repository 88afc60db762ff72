package zkdriver_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// digest returns the credentials that a peer receives when a user authenticates.
func digest(user, password string) []byte {
	return append(append([]byte{0, 0, 0, 0}, str("digest")...), str(user+":"+password)...)
}

func withUser(u driver.URL) driver.URL {
	u.User, u.Password = "al", driver.NewSecret("s3cret")
	return u
}

func TestAuthenticationComesFirst(t *testing.T) {
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for i := 0; ; i++ {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op != opClose && r.op == opAuth != (i == 0) {
				t.Errorf("connection %d: request %d is operation %d", l.n, i, r.op)
			}
			if r.op == opAuth && !bytes.Equal(r.body, digest("al", "s3cret")) {
				t.Errorf("connection %d: credentials %q", l.n, r.body)
			}
			l.succeed(r)
		}
	})
	s := connect(t, withUser(p.url()))
	for want := uint64(2); want < 5; want++ {
		if err := s.Sync(within(t, 5*time.Second), "/"); err != nil {
			t.Error(err)
		}
		p.drop()
		generation(t, s, want)
	}
}

func TestAuthenticationRefused(t *testing.T) {
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		if r, ok := l.read(); ok {
			l.reply(r, -115, nil)
			_, _ = l.readFrame()
		}
	})
	_, err := open(t, withUser(p.url())).Connect(within(t, 5*time.Second), 4*time.Second)
	matches(t, err, driver.ErrAuthFailed)
	if err != nil && strings.Contains(err.Error(), "s3cret") {
		t.Errorf("the error shows the password: %v", err)
	}
}

// The client forgets credentials if the connection is lost while they are being
// accepted. A session that lacks its credentials on a later connection must not be
// returned.
func TestAuthenticationSurvivesALossAtTheSameTime(t *testing.T) {
	for range 3 {
		p := newPeer(t, func(l *link) {
			l.greet(sid)
			authenticated := false
			for {
				r, ok := l.read()
				if !ok {
					return
				}
				authenticated = authenticated || r.op == opAuth
				if !authenticated && r.op != opClose {
					l.reply(r, -102, nil)
					continue
				}
				if l.n == 1 && r.op == opAuth {
					return // instead of an answer
				}
				l.succeed(r)
				if l.n <= 3 && r.op == opAuth {
					return // right after the answer
				}
			}
		})
		s := connect(t, withUser(p.url()))
		for range 3 {
			if err := s.Sync(within(t, 5*time.Second), "/"); err != nil && !lostConn(err) {
				t.Fatal(err)
			}
			g, _ := s.Conn()
			p.drop()
			generation(t, s, g+1)
		}
	}
}

// The client may reconnect after the server has accepted the credentials and before
// it stores them. The new connection lacks the credentials, and only a changed
// generation shows that.
func TestCredentialsStoredTooLateAreAddedAgain(t *testing.T) {
	p := newPeer(t, (*link).work)
	s := connect(t, p.url())
	added := 0
	if err := zkdriver.Authenticate(within(t, 10*time.Second), s, func() error {
		added++
		if added < 3 {
			g, _ := s.Conn()
			p.drop()
			generation(t, s, g+1)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if added != 3 {
		t.Errorf("credentials were added %d times, want once more after each of 2 reconnects", added)
	}
}

// If a connection breaks while the client presents credentials again, and the client
// learns of that by a failed write, it blocks for ever.
func TestReauthenticationOnADeadConnection(t *testing.T) {
	var flaky atomic.Int32
	p := newPeer(t, func(l *link) {
		if l.n > 1 && l.n < 8 {
			flaky.Add(1)
			l.greet(sid)
			_ = l.Conn.(*net.TCPConn).SetLinger(0) // reset, so that writes fail
			return
		}
		l.work()
	})
	s := connect(t, withUser(p.url()))
	p.drop()
	ctx := within(t, 20*time.Second)
	for {
		err := s.Sync(ctx, "/")
		if g, _ := s.Conn(); err == nil && g > 1 {
			break
		}
		if err != nil && !lostConn(err) || ctx.Err() != nil {
			t.Fatalf("session does not recover: %v", err)
		}
	}
	if flaky.Load() != 6 {
		t.Errorf("%d connections were reset, want 6", flaky.Load())
	}
}

func TestPasswordFileIsReadForEachSession(t *testing.T) {
	got := make(chan []byte, 2)
	p := newPeer(t, func(l *link) {
		l.greet(sid)
		for {
			r, ok := l.read()
			if !ok {
				return
			}
			if r.op == opAuth {
				got <- r.body
			}
			l.succeed(r)
		}
	})
	file := filepath.Join(t.TempDir(), "password")
	u := p.url()
	u.User, u.Params = "al", map[string][]string{"password_file": {file}}
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("one\n")
	c := open(t, u)
	for _, password := range []string{"one", "two"} {
		write(password + "\r\n")
		s, err := c.Connect(within(t, 5*time.Second), 4*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer shut(s)
		if b := recv(t, got); !bytes.Equal(b, digest("al", password)) {
			t.Errorf("credentials %q", b)
		}
	}
}

// DNS decides the address of a name. A password that must not leave this machine does not leave
// it, whatever address localhost has.
func TestPasswordStaysOnThisMachineWhateverLocalhostIs(t *testing.T) {
	p := newPeer(t, (*link).work)
	for _, c := range []struct {
		what    string
		servers []string
		refused bool
	}{
		// No host has such an address, so no server answers there.
		{"another machine", []string{"192.0.2.1:2181"}, true},
		{"another machine by IPv6", []string{"[2001:db8::1]:2181"}, true},
		{"another machine by IPv4 in IPv6", []string{"[::ffff:192.0.2.1]:2181"}, true},
		{"all of several", []string{"192.0.2.1:2181", "192.0.2.2:2181"}, true},
		{"one of several", []string{"192.0.2.1:2181", p.addr()}, false},
		{"this machine", []string{p.addr()}, false},
	} {
		connector, err := zkdriver.OpenConnectorTo(withUser(driver.URL{Scheme: "zk", Hosts: []string{"localhost"}}), c.servers...)
		if err != nil {
			t.Fatal(err)
		}
		s, err := connector.Connect(within(t, 5*time.Second), 4*time.Second)
		if !c.refused {
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
			} else {
				shut(s)
			}
		} else {
			matches(t, err, driver.ErrNotSent)
			if err != nil && (!strings.Contains(err.Error(), "unencrypted") || strings.Contains(err.Error(), "s3cret")) {
				t.Errorf("%s: %v", c.what, err)
			}
		}
		_ = connector.Close()
	}
}

// lostConn reports whether an error means only that a connection broke.
func lostConn(err error) bool {
	return errors.Is(err, driver.ErrConnLoss) || errors.Is(err, driver.ErrNotSent)
}
