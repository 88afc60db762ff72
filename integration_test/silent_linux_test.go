package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// namespaceEnv is set in a process that has a network namespace of its own.
const namespaceEnv = "ZKLOCK_TEST_NAMESPACE"

// TestSilentRouteCostsNoLock: a server runs, and the network drops what clients send to it, or what it sends, or both;
// or it forgets the connections that exist, and lets new ones through. The test runs in a network namespace, so
// that its rules are for no other program.
func TestSilentRouteCostsNoLock(t *testing.T) {
	ensemble.Require(t)
	if os.Getenv(namespaceEnv) == "" {
		long.Test(t, "each fault takes a session timeout")
		if _, err := exec.LookPath("iptables"); err != nil || os.Getuid() != 0 {
			t.Skip("needs root and iptables")
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSilentRouteCostsNoLock$", "-test.v", "-test.timeout=0")
		cmd.Env = append(os.Environ(), namespaceEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err := shell("ip", "link", "set", "lo", "up"); err != nil {
		t.Fatal(err)
	}
	for what, rules := range map[string]func(port string) []string{
		"to it":       func(port string) []string { return []string{"--dport " + port} },
		"from it":     func(port string) []string { return []string{"--sport " + port} },
		"both ways":   func(port string) []string { return []string{"--dport " + port, "--sport " + port} },
		"established": forgotten,
	} {
		t.Run(what, func(t *testing.T) {
			silentServer(t, ensemble.Config{}, silence{
				calls: true,
				begin: func(_ *ensemble.Ensemble, s *ensemble.Server) (err error) {
					for _, addr := range []string{s.Addr(), s.SecureAddr()} {
						_, port, _ := net.SplitHostPort(addr)
						for _, rule := range rules(port) {
							err = errors.Join(err, shell("iptables", strings.Fields("-A INPUT -p tcp "+rule+" -j DROP")...))
						}
					}
					return err
				},
				end: func(*ensemble.Server) error { return shell("iptables", "-F", "INPUT") },
			}, eachTimeout()...)
		})
	}
}

// forgotten returns the rules for all connections that a port has now.
func forgotten(port string) (rules []string) {
	var p uint16
	_, _ = fmt.Sscan(port, &p)
	tables, _ := filepath.Glob("/proc/net/tcp*")
	for _, table := range tables {
		text, _ := os.ReadFile(table)
		for line := range bytes.Lines(text) {
			var local, remote uint16
			fields := strings.Fields(string(line))
			if len(fields) < 4 || fields[3] != "01" { // established
				continue
			}
			_, _ = fmt.Sscanf(fields[1][strings.LastIndex(fields[1], ":")+1:], "%X", &local)
			_, _ = fmt.Sscanf(fields[2][strings.LastIndex(fields[2], ":")+1:], "%X", &remote)
			if remote == p {
				rules = append(rules, fmt.Sprintf("--dport %d --sport %d", p, local))
			}
		}
	}
	return rules
}

// shell runs a command.
func shell(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
