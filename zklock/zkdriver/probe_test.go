package zkdriver_test

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wire"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// answersText makes a peer that gives one answer to the four letters srvr. On
// anything else it closes the connection, as ZooKeeper does.
func answersText(n *wire.Network, answer string, asked *atomic.Int32) *peer {
	return virtual(n, 0, func(l *link) {
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

// TestWhatAServerIsIsFoundOut: a server that closes connections is probed, once in a
// while for all sessions together. If the result is permanent, Connect ends.
func TestWhatAServerIsIsFoundOut(t *testing.T) {
	for name, c := range map[string]struct {
		secure bool
		answer string
		is     []error
		says   string
		asked  int32 // number of probes in two calls of Connect
	}{
		"zks to a plain port":               {true, "Zookeeper version: 3.9.3", []error{driver.ErrTLS}, "zk:// instead of zks://", 2},
		"zks to one that answers no srvr":   {true, "srvr is not executed because it is not in the whitelist.", []error{driver.ErrTLS}, "zk:// instead of zks://", 2},
		"zk to a server without a quorum":   {false, "This ZooKeeper instance is not currently serving requests", nil, "no quorum at the moment", 1},
		"zk to a read-only server":          {false, "Zookeeper version: 3.9.3\nZxid: 0x0\nMode: read-only\nNode count: 5\n", nil, "read-only mode", 1},
		"zk to a server with a limit":       {false, "", []error{zkdriver.ErrNotZooKeeper}, "maxClientCnxns", 1},
		"zk to a web server":                {false, "HTTP/1.1 400 Bad Request", []error{zkdriver.ErrNotZooKeeper, driver.ErrProtocol}, "it speaks HTTP", 2},
		"zk to a server that has recovered": {false, "Zookeeper version: 3.9.3", nil, "closed the connection", 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, _ *memdriver.Ensemble, n *wire.Network) {
				var asked atomic.Int32
				p := answersText(n, c.answer, &asked)
				u := p.url()
				if c.secure {
					u.Scheme = "zks"
				}
				connector := open(t, u)
				for range 2 {
					_, err := connector.Connect(within(t, 10*time.Second), 4*time.Second)
					matches(t, err, append(c.is, driver.ErrNotSent)...)
					if err != nil && !strings.Contains(err.Error(), c.says) {
						t.Errorf("the error %q does not contain %q", err, c.says)
					}
					for _, noise := range []string{"EOF", "tcp", "not the ZooKeeper protocol"} {
						if err != nil && strings.Contains(err.Error(), noise) {
							t.Errorf("the error %q contains %q", err, noise)
						}
					}
					if err != nil && strings.Count(err.Error(), "ZooKeeper server") > 1 {
						t.Errorf("the error %q says \"ZooKeeper server\" more than once", err)
					}
				}
				if n := asked.Load(); n != c.asked {
					t.Errorf("the server was probed %d times, want %d", n, c.asked)
				}
			})
		})
	}
}

// tlsHandshake is the first byte of a TLS handshake.
const tlsHandshake = 22

// answersTLS makes a peer that answers only the beginning of a TLS handshake. It
// calls wait with the number of such a handshake, and answers if that returns true.
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

// TestSlowServerThatSpeaksTLS: a probe has as much time as an attempt. If the server
// does not answer in that time, another probe follows soon.
func TestSlowServerThatSpeaksTLS(t *testing.T) {
	for name, wait := range map[string]func(*link, int32) bool{
		"an answer after 700 ms":       func(*link, int32) bool { <-time.After(700 * time.Millisecond); return true },
		"no answer to the first probe": func(_ *link, n int32) bool { return n > 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// With such a short session timeout, each attempt has one second.
			_, err := open(t, answersTLS(t, wait).url()).Connect(within(t, 10*time.Second), 2*time.Second)
			matches(t, err, zkdriver.ErrNotZooKeeper, driver.ErrNotSent)
			if err != nil && (!strings.Contains(err.Error(), ": it expects TLS") || strings.Contains(err.Error(), "the ZooKeeper protocol")) {
				t.Errorf("the error %q does not say only that the server expects TLS", err)
			}
		})
	}
}
