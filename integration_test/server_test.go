package integration_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// TestServerForTryingServesUntilItIsInterrupted runs the command of make server.
func TestServerForTryingServesUntilItIsInterrupted(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	program := filepath.Join(t.TempDir(), "server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./server").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	port := strconv.Itoa(ensemble.FreePort(t)) // no other test gets it until the server listens
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-port", port)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "zk://127.0.0.1:"+port) {
		t.Errorf("it printed %q (%v), want the address with port %s", line, err, port)
	}
	c := dial(t, "127.0.0.1:"+port, nil)
	lock, err := zklock.All(c.Mutex("a"), c.Mutex("b")).Acquire(within(t))
	if err != nil {
		t.Fatal(err)
	}
	release(t, lock)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("its end after an interrupt: %v, want no error", err)
	}
	if again := exec.CommandContext(ctx, program, "-port", strconv.Itoa(-1)); again.Run() == nil {
		t.Error("it accepts the port -1")
	}
}
