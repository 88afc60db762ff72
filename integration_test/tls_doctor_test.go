package integration_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// TestDoctorUsesTLS: over TLS, zklock doctor has the version and the configuration of a server,
// with the certificates of the URL, and reports a server that it does not trust.
func TestDoctorUsesTLS(t *testing.T) {
	t.Parallel()
	ours, other := newAuthority(t, "ours"), newAuthority(t, "other")
	files := newPEMFiles(t)
	e := secureEnsemble(t, ours.issue(time.Hour, "server", "localhost"), []*authority{ours}, ensemble.Config{})
	client := ours.issue(time.Hour, "client")
	binary := filepath.Join(t.TempDir(), "zklock")
	build := exec.Command("go", "build", "-o", binary, "./cmd/zklock")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ask := func(url string) (string, int) {
		cmd := exec.Command(binary, "doctor")
		cmd.Env = append(os.Environ(), "ZKLOCK_URL="+url)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	doctor := func(ca string, keys ...string) (string, int) {
		params := quick(append([]string{"tls_ca", ca, "tls_server_name", "localhost", "connect_timeout", "5s"}, keys...)...)
		return ask("zks://" + e.SecureHosts() + "/tls?" + params.Encode())
	}
	ca := files.write("ca.pem", ours.pem)
	// A server's first handshake may take longer than doctor waits.
	first := dialTLS(t, "", byName(t, e.SecureHosts()), quick("tls_ca", ca, "connect_timeout", patience.String()))
	if err := first.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, keys := range map[string][]string{
		"without a certificate": nil,
		"with a certificate":    {"tls_cert", files.write("client.pem", client.cert), "tls_key", files.write("client.key", client.key)},
	} {
		out, code := doctor(ca, keys...)
		if code != 0 || !strings.Contains(out, "ZooKeeper 3.") || !strings.Contains(out, "500ms is not less than the servers' tickTime") || !strings.HasSuffix(out, "\nok\n") {
			t.Errorf("%s: %d\n%s", what, code, out)
		}
	}
	out, code := doctor(files.write("other.pem", other.pem))
	if code != 78 || !strings.Contains(out, adviceTLS) || strings.Contains(out, "ZooKeeper 3.") {
		t.Errorf("an authority that has not signed the server's certificate: %d\n%s", code, out)
	}
	out, code = ask("zk://" + e.SecureHosts() + "/tls?" + quick().Encode())
	if code != 78 || !strings.Contains(out, "it expects TLS: use zks:// instead of zk://") || !strings.Contains(out, adviceTLS) || strings.Contains(out, "quorum") {
		t.Errorf("zk:// to a port of TLS: %d\n%s", code, out)
	}
}

const adviceTLS = "change the URL or the servers as the text says"
