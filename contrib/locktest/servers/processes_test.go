package servers_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/servers"
)

// serveEnv makes the test binary a server at an address.
const serveEnv = "LOCKTEST_SERVE"

func TestMain(m *testing.M) {
	addr := os.Getenv(serveEnv)
	switch addr {
	case "":
		os.Exit(m.Run())
	case "nowhere":
		os.Exit(1)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			os.Exit(1)
		}
		c.Close()
	}
}

// dials reports whether a server accepts connections.
func dials(ctx context.Context, addr string) error {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil {
		c.Close()
	}
	return err
}

func TestProcesses(t *testing.T) {
	ports, err := servers.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	var commands []servers.Command
	for _, port := range ports {
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		commands = append(commands, servers.Command{
			Path: os.Args[0], Env: []string{serveEnv + "=" + addr}, Addr: addr,
			Status: func(context.Context, string) (string, error) { return "no clients", nil },
		})
	}
	p, err := servers.Run(commands)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(1); err == nil {
		t.Error("a server that runs was started")
	}
	if err := p.Kill(1); err != nil {
		t.Fatal(err)
	}
	if status := p.Status(t.Context()); status != "server 1:\nno clients" {
		t.Errorf("the status is %q, want that of the server that runs", status)
	}
	if dials(t.Context(), p.Addrs()[1]) == nil || dials(t.Context(), p.Addrs()[0]) != nil {
		t.Error("after the kill of the second server, the second serves, or the first does not")
	}
	if err := p.Start(1); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil || dials(t.Context(), p.Addrs()[0]) == nil {
		t.Errorf("after Close, a server serves; %v", err)
	}
}

func TestProcessesThatEnd(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, err := servers.Run([]servers.Command{{Path: os.Args[0], Env: []string{serveEnv + "=nowhere"}, Addr: "127.0.0.1:1", Log: log}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Await(t.Context()); err == nil || !strings.Contains(err.Error(), log) {
		t.Errorf("%v, want an error that names the log", err)
	}
	if _, err := servers.Run([]servers.Command{{Path: filepath.Join(t.TempDir(), "missing")}}); err == nil {
		t.Error("a program that does not exist was started")
	}
	if err := servers.Given([]string{"a:1"}).Kill(0); err == nil {
		t.Error("a server of another program was killed")
	}
}

// TestBackends starts three servers of each kind, breaks them in each way, and waits for them. It needs the
// servers, and half a minute of a busy machine for each.
func TestBackends(t *testing.T) {
	if os.Getenv("ZKLOCK_LONG") != "1" {
		t.Skip("it starts three servers of each kind: set ZKLOCK_LONG=1")
	}
	for _, b := range servers.Backends {
		t.Run(b.Name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			p, err := b.Run(ctx, t.TempDir(), 3, servers.Options{Clocks: b.Clocks})
			if err != nil && strings.Contains(err.Error(), "found: install") {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			must := func(what string, err error) {
				t.Helper()
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
			must("kill", p.Kill(0))
			must("start", p.Start(0))
			must("wait", p.Await(ctx))
			must("restart", p.Restart(ctx, 1))
			leader, err := p.Leader(ctx)
			must("leader", err)
			if (leader >= 0) != b.Leads {
				t.Errorf("the leader is %d", leader)
			}
			want := map[string]int{"zookeeper": 3}[b.Name]
			if status := p.Status(ctx); strings.Count(status, "Mode: ") != want || strings.Count(status, "Sessions with Ephemerals (") != want {
				t.Errorf("the status of the servers is %q", status)
			}
			if cut := p.Cut(2, true); cut != b.Leads {
				t.Errorf("a server was cut off from the others: %v", cut)
			}
			p.Cut(2, false)
			must("stop", p.Stop(0, true))
			must("continue", p.Stop(0, false))
			must("wait", p.Await(ctx))
			if b.Supports(fault.SlowDisk, 3) == nil {
				must("slow", p.Slow(0, 50*time.Millisecond))
				must("fast", p.Slow(0, 0))
			}
			if b.Clocks {
				must("jump", p.Jump(0, time.Hour))
				must("jump back", p.Jump(0, 0))
			}
			must("wait", p.Await(ctx))
		})
	}
}
