package doctor

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/zklock/go-zklock/zklock/driver"
)

// A server that is down, one without a quorum, and one whose name is wrong are found at once, and
// each has its own error.
func TestReachable(t *testing.T) {
	answering := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					word := make([]byte, 4)
					if _, err := io.ReadFull(bufio.NewReader(c), word); err == nil && string(word) == "srvr" {
						_, _ = io.WriteString(c, answer)
					}
				}()
			}
		}()
		return l.Addr().String()
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := closed.Addr().String()
	_ = closed.Close()
	for host, want := range map[string]error{
		refusing: errRefused,
		answering("This ZooKeeper instance is not currently serving requests\n"): errNotServing,
		answering("Zookeeper version: 3.8.0\nMode: follower\n"):                  nil,
		answering("srvr is not executed because it is not in the whitelist.\n"):  nil,
		"no.such.host.invalid:2181":                                              errUnknownHost,
	} {
		_, got := reachable(t.Context(), driver.URL{Scheme: "zk"}, host)
		if !errors.Is(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", host, got, want)
		}
		if (server{err: got}).isDown() != (want != nil) {
			t.Errorf("%s: isDown is wrong for %v", host, got)
		}
	}
}
