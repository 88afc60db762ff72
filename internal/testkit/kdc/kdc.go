// Package kdc runs a real KDC of MIT Kerberos for tests, on a free port of 127.0.0.1, with its
// database in a temporary folder:
//
//	kdc.Require(t)
//	k := kdc.Start(t, kdc.Config{})
//	keytab := k.Keytab("svc")
//
// It needs the programs of Debian's and Ubuntu's packages krb5-kdc, krb5-admin-server and
// krb5-user.
package kdc

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/fips"
	"github.com/zklock/go-zklock/internal/testkit/wait"
)

// Realm is the realm of every KDC.
const Realm = "ZKLOCK.TEST"

// Config configures a KDC. The zero value makes tickets of a day, with keys of AES.
type Config struct {
	// Life is the life of tickets, in seconds at least; 0 means a day.
	Life time.Duration

	// Renewable is how long tickets can be renewed; 0 means not at all.
	Renewable time.Duration

	// Types are the types of all keys, as in supported_enctypes of kdc.conf; "" means AES.
	Types string

	// Env are additional environment variables of the KDC.
	Env []string

	// Lines are additional lines of the section libdefaults in the clients' krb5.conf.
	Lines []string
}

// KDC is a KDC, running or stopped. Its methods are not safe for concurrent use.
type KDC struct {
	t      testing.TB
	config Config
	dir    string
	addr   string
	cmd    *exec.Cmd
	over   chan struct{} // closed when cmd has ended
}

// programs are those that a KDC needs.
var programs = []string{"krb5kdc", "kdb5_util", "kadmin.local", "kinit"}

// find returns the path of a program: Debian has some in folders that only root has in PATH.
func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	return exec.LookPath("/usr/sbin/" + program)
}

// Require skips the test if no KDC is installed, or fails it as ensemble.Require does.
func Require(t testing.TB) {
	t.Helper()
	for _, p := range programs {
		if _, err := find(p); err != nil {
			const text = "no %s found: install krb5-kdc, krb5-admin-server and krb5-user (%s=1 forbids skipping)"
			if os.Getenv(ensemble.RequiredEnv) == "1" {
				t.Fatalf(text, p, ensemble.RequiredEnv)
			}
			t.Skipf(text, p, ensemble.RequiredEnv)
		}
	}
}

// Start makes a database and runs a KDC until the test and its subtests are over.
func Start(t testing.TB, c Config) *KDC {
	t.Helper()
	k := &KDC{t: t, config: c, dir: t.TempDir(), addr: fmt.Sprintf("127.0.0.1:%d", ensemble.FreePort(t))}
	k.configure()
	k.run("kdb5_util", "create", "-s", "-r", Realm, "-P", "master")
	// The service that grants tickets limits their life, too.
	k.Admin("modprinc", "-maxlife", k.life(), "-maxrenewlife", k.renewable(), "krbtgt/"+Realm)
	k.Resume()
	t.Cleanup(k.Stop)
	return k
}

func (k *KDC) life() string {
	if k.config.Life == 0 {
		return "1 day"
	}
	return fmt.Sprintf("%d seconds", int(k.config.Life.Seconds()))
}

func (k *KDC) renewable() string { return fmt.Sprintf("%d seconds", int(k.config.Renewable.Seconds())) }

// configure writes the files that the programs read.
func (k *KDC) configure() {
	types := k.config.Types
	if types == "" {
		types = "aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal"
		if fips.Only() { // clients cannot use SHA-1 then
			types = "aes256-cts-hmac-sha384-192:normal aes128-cts-hmac-sha256-128:normal"
		}
	}
	k.write("kdc.conf", fmt.Sprintf(`[kdcdefaults]
	kdc_listen = %[2]s
	kdc_tcp_listen = %[2]s
[realms]
	%[1]s = {
		database_name = %[3]s/principal
		key_stash_file = %[3]s/stash
		acl_file = %[3]s/kadm5.acl
		supported_enctypes = %[4]s
		max_life = %[5]s
		max_renewable_life = %[6]s
	}
[logging]
	kdc = FILE:%[3]s/kdc.log
`, Realm, k.addr, k.dir, types, strings.ReplaceAll(k.life(), " seconds", "s"), strings.ReplaceAll(k.renewable(), " seconds", "s")))
	k.write("krb5.conf", fmt.Sprintf(`[libdefaults]
	default_realm = %[1]s
	dns_lookup_kdc = false
	%[3]s
[realms]
	%[1]s = {
		kdc = %[2]s
	}
`, Realm, k.addr, strings.Join(k.config.Lines, "\n\t")))
}

func (k *KDC) write(name, text string) {
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// ConfigFile returns the krb5.conf for clients and servers.
func (k *KDC) ConfigFile() string { return filepath.Join(k.dir, "krb5.conf") }

// Addr returns the KDC's address.
func (k *KDC) Addr() string { return k.addr }

// command returns a command of Kerberos with the environment that it needs.
func (k *KDC) command(program string, args ...string) *exec.Cmd {
	k.t.Helper()
	path, err := find(program)
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "KRB5_CONFIG="+k.ConfigFile(), "KRB5_KDC_PROFILE="+filepath.Join(k.dir, "kdc.conf"))
	return cmd
}

// run runs a program to its end.
func (k *KDC) run(program string, args ...string) {
	k.t.Helper()
	if out, err := k.command(program, args...).CombinedOutput(); err != nil {
		k.t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}

// Admin executes a command of kadmin.
func (k *KDC) Admin(words ...string) {
	k.t.Helper()
	out, err := k.command("kadmin.local", append([]string{"-r", Realm}, words...)...).CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("while ")) {
		k.t.Fatalf("kadmin.local %q: %v\n%s", words, err, out)
	}
}

// Add makes a principal with a random key.
func (k *KDC) Add(principal string) {
	k.t.Helper()
	k.Admin("addprinc", "-randkey", "-maxlife", k.life(), "-maxrenewlife", k.renewable(), principal)
}

// Keytab makes a principal, and a file with its keys.
func (k *KDC) Keytab(principal string) (file string) {
	k.t.Helper()
	k.Add(principal)
	return k.Export(principal)
}

// Export writes a file with the keys of a principal, without changing them.
func (k *KDC) Export(principal string) (file string) {
	k.t.Helper()
	file = filepath.Join(k.dir, strings.ReplaceAll(principal, "/", "_")+".keytab")
	k.Admin("ktadd", "-norandkey", "-k", file, principal)
	return file
}

// Cache writes a credential cache of a principal whose keys are in a file.
func (k *KDC) Cache(principal, keytab string, flags ...string) (file string) {
	k.t.Helper()
	file = filepath.Join(k.dir, strings.ReplaceAll(principal, "/", "_")+".ccache")
	k.run("kinit", append(flags, "-c", "FILE:"+file, "-k", "-t", keytab, principal)...)
	return file
}

// JAAS returns the JAAS file of ZooKeeper servers whose principal has its keys in a file. They
// only accept clients. By default a server also fetches a ticket of its own, and accepts no client
// when it cannot renew that.
func JAAS(principal, keytab string) string {
	return fmt.Sprintf(`Server {
	com.sun.security.auth.module.Krb5LoginModule required
	useKeyTab=true storeKey=true useTicketCache=false doNotPrompt=true isInitiator=false
	keyTab="%s" principal="%s@%s";
};
`, filepath.ToSlash(keytab), principal, Realm)
}

// JavaOptions returns the options of a Java machine that uses this KDC.
func (k *KDC) JavaOptions() []string { return []string{"-Djava.security.krb5.conf=" + k.ConfigFile()} }

// Log returns what the KDC has logged.
func (k *KDC) Log() string {
	b, _ := os.ReadFile(filepath.Join(k.dir, "kdc.log")) // none yet
	return string(b)
}

// Resume starts the KDC, and returns when it answers.
func (k *KDC) Resume() {
	k.t.Helper()
	cmd := k.command("krb5kdc", "-n", "-r", Realm)
	cmd.Env = append(cmd.Env, k.config.Env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	bindToParent(cmd)
	started, over := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread() // see package ensemble: the KDC ends with this thread
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // Stop ends it
		}
		close(over)
	}()
	if err := <-started; err != nil {
		k.t.Fatal(err)
	}
	k.cmd, k.over = cmd, over
	wait.Until(k.t, "the KDC listens", func() bool {
		select {
		case <-over:
			k.t.Fatalf("the KDC has ended: %s\n%s", out.Bytes(), k.Log())
		default:
		}
		conn, err := net.Dial("tcp", k.addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// Stop ends the KDC. Connections to it are refused until Resume.
func (k *KDC) Stop() {
	_ = k.cmd.Process.Kill() // an error means that it has ended already
	<-k.over
}
