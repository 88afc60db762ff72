package cli

import (
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestNoMessageShowsAPassword: a URL that stands in the wrong place of the command line shows up in many
// messages, of this package, of the flags and of the library. None has its password, which would get
// into logs and mails of cron.
func TestNoMessageShowsAPassword(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	for _, url := range []string{
		"zk://svc:hunter2@zk1", "zk://svc:a@hunter2@zk1/root", "zk://svc:hunter2 @zk1", "zk://svc:hunter2", "zk://svc:hunter2/root", "zk://a:2181,svc:hunter2",
		"svc:hunter2@zk1/locks", "svc:a@hunter2@zk1", "svc:hunter2 @zk1", "svc:a/hunter2@zk1", "zk:/svc:hunter2@zk1", "zk//svc:hunter2@zk1", "zk:svc:hunter2@zk1",
	} {
		lines := [][]string{
			{url}, {"lss", url}, {"ls", url}, {"who", url}, {"who", "x", url}, {"watch", url, "y"}, {"release", "x", url}, {"revoke", "--reason", "r", "x", url},
			{"ls", "-url=" + url}, {"ls", "-url", url}, {"ls", "--ulr=" + url}, {"ls", "--ulr", url}, {"ls", "-o", url}, {"ls", "--output=" + url},
			{"ls", "-o" + url}, {"ls", "--sort", url}, {"ls", "-" + url}, {"doctor", url}, {"top", url}, {"reap", url}, {"page", url},
			{"run", "--wait", url, "x", "--", "true"}, {"run", "-E", url, "x", "--", "true"}, {"run", "x", "--", url},
			{"ls", "--url", url + "?sesion_timeout=1s"}, {"ls", "--url", url + "?" + url}, {"ls", "--url", "zk//" + url}, {"page", "--listen", url},
		}
		if strings.Contains(url, "//") { // else it is the name of a lock
			lines = append(lines, []string{"run", url, "--", "true"}, []string{"elect", url, "--", "true"})
		}
		for _, line := range lines {
			code, stdout, stderr := command(t, e, line...)
			if out := stdout + stderr; strings.Contains(out, "hunter2") {
				t.Errorf("%q: %d, %s", line, code, out)
			}
		}
	}
	for _, address := range []string{"hunter2@zk1", "hunter2@zk1:7070", "svc:hunter2@zk1:7070"} {
		code, _, stderr := command(t, e, "page", "--listen", address)
		if code != exitUsage || strings.Contains(stderr, "hunter2") || !strings.Contains(stderr, "want host:port") {
			t.Errorf("page --listen %s: %d, %s", address, code, stderr)
		}
	}
}

// TestRedact: what stands around a password stays, and so does what only looks a little like one.
func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		`unknown command "zk://svc:hunter2@zk1/root"; see`: `unknown command "zk://REDACTED@zk1/root"; see`,
		`unknown command "svc:hunter2@zk1/root"; see`:      `unknown command "REDACTED@zk1/root"; see`,
		`invalid argument "zk//svc:a@b@zk1" for "--wait"`:  `invalid argument "zk//REDACTED@zk1" for "--wait"`,
		`unknown flag: --ulr=svc:hunter2@zk1`:              `unknown flag: --ulr=REDACTED@zk1`,
		`"zk://svc:hunter2/root"; see`:                     `"zk://REDACTED"; see`,
	} {
		if got := redact(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{
		`zk1:2181: connection refused; look at "billing" _c_0-0000000003@0x10000002a`, "want something like zk://host:2181/root", "zk://a:2181,b:2181: refused",
		"serving http://127.0.0.1:7070/", "serving http://[::1]:7070/", `"http://localhost:7070"; see`, `zklock: "orders:42": _c_0-0000000003@0x10000002a is gone`,
		`revoke orders:42 _c_0-0000000003@0x10000002a`, `error="release: _c_0-0000000003@0x2a"`, "zk1:2181 and zk2:2181", "zk://host:2181",
	} {
		if got := redact(text); got != text {
			t.Errorf("%s: %s, want no change", text, got)
		}
	}
}
