//go:build linux

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/kdc"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// requiresSASL makes servers refuse all requests of a client before it has authenticated.
const requiresSASL = "sessionRequireClientSASLAuth=true"

const jaasDigest = `Server {
	org.apache.zookeeper.server.auth.DigestLoginModule required user_svc="s3cret-canary";
};
`

// TestDoctorAndRunWithSASL: the commands work on servers that demand SASL, and doctor says what to do
// if the URL and the servers do not fit.
func TestDoctorAndRunWithSASL(t *testing.T) {
	t.Parallel()
	long.Test(t, "it builds the command with Kerberos, and starts three ensembles")
	ensemble.Require(t)
	kdc.Require(t)
	digest := ensemble.Start(t, ensemble.Config{JAAS: jaasDigest, Extra: []string{requiresSASL}})
	k := kdc.Start(t, kdc.Config{})
	const principal = "zookeeper/localhost"
	kerberos := ensemble.Start(t, ensemble.Config{JAAS: kdc.JAAS(principal, k.Keytab(principal)), JavaOptions: k.JavaOptions(), Extra: []string{requiresSASL}})
	keytab := []string{"KRB5_CONFIG=" + k.ConfigFile(), "KRB5_CLIENT_KTNAME=" + k.Keytab("svc")}
	cache := []string{"KRB5_CONFIG=" + k.ConfigFile(), "KRB5CCNAME=FILE:" + k.Cache("svc", k.Export("svc")), "KRB5_CLIENT_KTNAME="}
	url := func(user string, e *ensemble.Ensemble, params string) string {
		return "zk://" + user + e.Hosts() + root + "?tick_time=500ms&session_timeout=6s" + params
	}
	execute := func(b *build, url string, env []string, args ...string) (int, string) {
		t.Helper()
		p := prepared(b.binary(t), args...)
		p.cmd.Env = append(append(os.Environ(), "ZKLOCK_URL="+url), env...)
		p.begin(t)
		code := p.code(t)
		out := p.stdout.String() + p.stderr.String()
		if strings.Contains(out, "s3cret") {
			t.Errorf("%v shows the password:\n%s", args, out)
		}
		return code, out
	}
	for name, c := range map[string]struct {
		build *build
		url   string
		env   []string
	}{
		"digest-md5":       {built, url("svc:s3cret-canary@", digest, "&sasl=digest-md5"), nil},
		"kerberos, keytab": {kerberized, url("svc@", kerberos, "&sasl=kerberos"), keytab},
		"kerberos, cache":  {kerberized, url("", kerberos, "&sasl=kerberos"), cache},
	} {
		if code, out := execute(c.build, c.url, c.env, "run", "job", "--", "echo", "done"); code != 0 || !strings.Contains(out, "done") {
			t.Errorf("%s: run: %d, %s", name, code, out)
		}
		if code, out := execute(c.build, c.url, c.env, "doctor"); code != 0 || !strings.HasSuffix(strings.TrimSpace(out), "ok") {
			t.Errorf("%s: doctor: %d, %s", name, code, out)
		}
	}
	plain := servers(t)
	for name, c := range map[string]struct {
		build *build
		url   string
		env   []string
		says  []string
	}{
		"no SASL in the URL": {built, url("", digest, ""), nil, []string{"the servers demand another authentication", "sasl=digest-md5 and a user, or sasl=kerberos"}},
		"wrong password":     {built, url("svc:s3cret-wrong@", digest, "&sasl=digest-md5"), nil, []string{"password is wrong", "make sasl and the identity in the URL fit"}},
		"no SASL there":      {built, url("svc:s3cret-canary@", plain, "&sasl=digest-md5"), nil, []string{"the server has no SASL", "make sasl and the identity in the URL fit"}},
		"another mechanism":  {built, url("svc:s3cret-canary@", kerberos, "&sasl=digest-md5"), nil, []string{"another mechanism, such as Kerberos"}},
		"DIGEST-MD5 there":   {kerberized, url("svc@", digest, "&sasl=kerberos"), keytab, []string{"expects the mechanism DIGEST-MD5"}},
	} {
		code, out := execute(c.build, c.url, c.env, "doctor")
		t.Logf("%s: doctor ended with %d:\n%s", name, code, out)
		if code != 1 {
			t.Errorf("%s: exit code %d, want 1", name, code)
		}
		for _, s := range c.says {
			if !strings.Contains(out, s) {
				t.Errorf("%s: nothing of %q:\n%s", name, s, out)
			}
		}
	}
	if code, out := execute(built, url("svc@", kerberos, "&sasl=kerberos"), keytab, "ls"); code == 0 || !strings.Contains(out, "contrib/kerberos") {
		t.Errorf("the command without Kerberos: %d, %s", code, out)
	}
	killWithKerberos(t, url("svc@", kerberos, "&sasl=kerberos"), keytab)
	k.Stop()
	code, out := execute(kerberized, url("svc@", kerberos, "&sasl=kerberos"), keytab, "doctor")
	if code != 69 || !strings.Contains(out, "no KDC of realm ZKLOCK.TEST answers") || !strings.Contains(out, "such as making a KDC reachable") {
		t.Errorf("doctor without a KDC: %d, %s", code, out)
	}
}

// killWithKerberos kills a run. Its closer authenticates, and ends the session: then the session's file is
// gone, as it is not if the session expires. The environment has relative paths.
func killWithKerberos(t *testing.T, url string, env []string) {
	t.Helper()
	dir, name := filepath.Join(t.TempDir(), "sessions"), newName(t)
	p := prepared(kerberized.binary(t), "run", name, "--", "sh", "-c", "echo ready; sleep 1000")
	p.cmd.Env, p.cmd.Dir = append(os.Environ(), "ZKLOCK_URL="+url+"&session_dir="+dir), t.TempDir()
	for _, pair := range env {
		key, path, _ := strings.Cut(pair, "=")
		relative, err := filepath.Rel(p.cmd.Dir, path)
		if err != nil {
			t.Fatal(err)
		}
		p.cmd.Env = append(p.cmd.Env, key+"="+relative)
	}
	p.begin(t)
	eventually(t, "the command runs", func() bool { return p.stdout.String() == "ready\n" })
	closer := childOf(p.cmd.Process.Pid, "lock-closer")
	start := statOf(closer)[19]
	p.signal(t, syscall.SIGKILL)
	eventually(t, "the closer ends", func() bool { return !isAlive(closer, start) })
	if left, err := filepath.Glob(dir + "/*.session"); len(left) > 0 || err != nil {
		t.Errorf("the files %q of sessions are left, %v", left, err)
	}
}
