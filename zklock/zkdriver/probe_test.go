package zkdriver_test

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// answersText is a peer that gives one answer to the four letters srvr, and closes
// a connection on anything else, as ZooKeeper does.
func answersText(t *testing.T, answer string, asked *atomic.Int32) *peer {
	return newPeer(t, func(l *link) {
		first := make([]byte, 4)
		if _, err := io.ReadFull(l, first); err != nil {
			return
		}
		if string(first) == "srvr" {
			asked.Add(1)
			_, _ = io.WriteString(l, answer)
		}
	})
}

// TestWhatAServerIsIsFoundOut: a server that closes connections is asked, once for
// all sessions in a while, what it is. Where that will not change, Connect ends.
func TestWhatAServerIsIsFoundOut(t *testing.T) {
	for name, c := range map[string]struct {
		secure bool
		answer string
		is     []error
		says   string
		asked  int32 // in two calls of Connect
	}{
		"zks to a plain port":               {true, "Zookeeper version: 3.9.3", []error{driver.ErrTLS}, "zk:// and not zks://", 2},
		"zks to one that answers no srvr":   {true, "srvr is not executed because it is not in the whitelist.", []error{driver.ErrTLS}, "zk:// and not zks://", 2},
		"zk to a server without a quorum":   {false, "This ZooKeeper instance is not currently serving requests", nil, "no quorum at the moment", 1},
		"zk to a server with a limit":       {false, "", []error{zkdriver.ErrNotZooKeeper}, "maxClientCnxns", 1},
		"zk to a web server":                {false, "HTTP/1.1 400 Bad Request", []error{zkdriver.ErrNotZooKeeper, driver.ErrProtocol}, "it speaks HTTP", 2},
		"zk to a server that has recovered": {false, "Zookeeper version: 3.9.3", nil, "closed the connection", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			p := answersText(t, c.answer, &asked)
			u := p.url()
			if c.secure {
				u = tlsURL(t, p, "localhost")
			}
			connector := open(t, u)
			for range 2 {
				_, err := connector.Connect(within(t, 10*time.Second), 4*time.Second)
				matches(t, err, append(c.is, driver.ErrNotSent)...)
				if err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("%q does not say %q", err, c.says)
				}
				for _, noise := range []string{"EOF", "tcp", "not the ZooKeeper protocol"} {
					if err != nil && strings.Contains(err.Error(), noise) {
						t.Errorf("%q says %q", err, noise)
					}
				}
				if err != nil && strings.Count(err.Error(), "ZooKeeper server") > 1 {
					t.Errorf("%q says it more than once", err)
				}
			}
			if n := asked.Load(); n != c.asked {
				t.Errorf("it was asked %d times, want %d", n, c.asked)
			}
		})
	}
}

// tlsHandshake is the first byte of a TLS handshake.
const tlsHandshake = 22

// answersTLS is a peer that never answers anything but the beginning of a TLS
// handshake, which is the n-th one that it was sent, after what wait does.
func answersTLS(t *testing.T, wait func(l *link, n int32) bool) *peer {
	var begun atomic.Int32
	return newPeer(t, func(l *link) {
		first := make([]byte, 1)
		if _, err := io.ReadFull(l, first); err != nil {
			return
		}
		if first[0] == tlsHandshake && wait(l, begun.Add(1)) {
			_, _ = io.WriteString(l, "\x15\x03\x01\x00\x02\x02\x28") // an alert: handshake_failure
			return
		}
		_, _ = io.Copy(io.Discard, l)
	})
}

// TestSlowServerThatSpeaksTLS: a look has the time that an attempt has. One that was
// not answered in it is soon followed by another.
func TestSlowServerThatSpeaksTLS(t *testing.T) {
	for name, wait := range map[string]func(*link, int32) bool{
		"an answer after 700 ms": func(*link, int32) bool { <-time.After(700 * time.Millisecond); return true },
		"none to the first look": func(_ *link, n int32) bool { return n > 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// So short a session timeout makes attempts of a second each.
			_, err := open(t, answersTLS(t, wait).url()).Connect(within(t, 10*time.Second), 2*time.Second)
			matches(t, err, zkdriver.ErrNotZooKeeper, driver.ErrNotSent)
			if err != nil && (!strings.Contains(err.Error(), ": it expects TLS") || strings.Contains(err.Error(), "the ZooKeeper protocol")) {
				t.Errorf("%q does not say that it expects TLS, and no more", err)
			}
		})
	}
}
