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
	for _, url := range []string{"zk://svc:hunter2@zk1", "zk://svc:a@hunter2@zk1/root", "zk://svc:hunter2 @zk1"} {
		for _, line := range [][]string{
			{url}, {"lss", url}, {"ls", url}, {"who", url}, {"who", "x", url}, {"watch", url, "y"}, {"release", "x", url}, {"revoke", "--reason", "r", "x", url},
			{"ls", "-url=" + url}, {"ls", "-url", url}, {"ls", "--ulr=" + url}, {"ls", "--ulr", url}, {"ls", "-o", url}, {"ls", "--output=" + url},
			{"run", url, "--", "true"}, {"run", "--wait", url, "x", "--", "true"}, {"run", "-E", url, "x", "--", "true"}, {"run", "x", "--", url},
			{"ls", "--url", url + "?sesion_timeout=1s"}, {"ls", "--url", url + "?" + url}, {"ls", "--url", "zk//" + url}, {"page", "--listen", url},
		} {
			code, stdout, stderr := command(t, e, line...)
			if out := stdout + stderr; strings.Contains(out, "hunter2") {
				t.Errorf("%q: %d, %s", line, code, out)
			}
		}
	}
	if _, _, stderr := command(t, e, "zk://svc:hunter2@zk1/root"); !strings.Contains(stderr, `unknown command "zk://REDACTED@zk1/root"`) {
		t.Errorf("the rest of the message is missing: %s", stderr)
	}
}
