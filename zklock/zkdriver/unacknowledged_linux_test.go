package zkdriver_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// The kernel says of a connection whose packets are dropped that they are not acknowledged, and says nothing of the kind of one
// whose peer reads nothing: that is a server which is slow. The test runs in a network namespace, for its rule of iptables.
func TestKernelKnowsWhatIsNotAcknowledged(t *testing.T) {
	const inside = "ZKLOCK_TEST_NAMESPACE"
	if os.Getenv(inside) == "" {
		t.Parallel()
		for _, needed := range []string{"iptables", "ip"} {
			if _, err := exec.LookPath(needed); err != nil || os.Getuid() != 0 {
				t.Skip("needs root, iptables and ip")
			}
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
		switch out, err := cmd.CombinedOutput(); {
		case errors.Is(err, syscall.EPERM) || bytes.Contains(out, []byte("--- SKIP")):
			t.Skipf("no network namespace with rules: %v\n%s", err, out) // as in a container
		case err != nil:
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	command := func(name string, args ...string) {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	command("ip", "link", "set", "lo", "up")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var conns [2]net.Conn
	for i := range conns {
		if conns[i], err = net.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
		defer conns[i].Close()
	}
	dropped, unread := conns[0], conns[1]
	if out, err := exec.Command("iptables", "-S").CombinedOutput(); err != nil {
		t.Skipf("the kernel has no rules: %v\n%s", err, out)
	}
	command("iptables", "-A", "INPUT", "-p", "tcp", "--sport", strconv.Itoa(dropped.LocalAddr().(*net.TCPAddr).Port), "-j", "DROP")
	for _, c := range conns {
		if _, err := c.Write([]byte("a request")); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	for look := time.NewTicker(10 * time.Millisecond); !zkdriver.Unacknowledged(dropped); <-look.C {
		if time.Since(began) > 30*time.Second { // Linux sends for the third time after 0.8 s
			t.Fatal("the kernel knows nothing of a connection whose packets are dropped")
		}
	}
	t.Logf("known after %v", time.Since(began))
	if zkdriver.Unacknowledged(unread) {
		t.Error("a peer that reads nothing looks like one whose packets are dropped")
	}
}
