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
		commands = append(commands, servers.Command{Path: os.Args[0], Env: []string{serveEnv + "=" + addr}, Addr: addr})
	}
	p, err := servers.Run(commands)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Await(t.Context(), dials); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(1); err == nil {
		t.Error("a server that runs was started")
	}
	if err := p.Kill(1); err != nil {
		t.Fatal(err)
	}
	if dials(t.Context(), p.Addrs()[1]) == nil || dials(t.Context(), p.Addrs()[0]) != nil {
		t.Error("after the kill of the second server, the second serves, or the first does not")
	}
	if err := p.Start(1); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(t.Context(), dials); err != nil {
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
	if err := p.Await(t.Context(), dials); err == nil || !strings.Contains(err.Error(), log) {
		t.Errorf("%v, want an error that names the log", err)
	}
	if _, err := servers.Run([]servers.Command{{Path: filepath.Join(t.TempDir(), "missing")}}); err == nil {
		t.Error("a program that does not exist was started")
	}
	if err := servers.Given([]string{"a:1"}).Kill(0); err == nil {
		t.Error("a server of another program was killed")
	}
}

// TestZooKeeper needs Java and ZooKeeper, and half a minute of a busy machine.
func TestZooKeeper(t *testing.T) {
	if os.Getenv("ZKLOCK_LONG") != "1" {
		t.Skip("it starts three servers: set ZKLOCK_LONG=1")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	p, err := servers.ZooKeeper(ctx, t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Kill(0); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(0); err != nil {
		t.Fatal(err)
	}
	if err := p.Await(ctx, servers.ZooKeeperServes); err != nil {
		t.Error(err)
	}
}
