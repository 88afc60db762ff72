package zklock_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

func TestSecretsStayOutOfErrors(t *testing.T) {
	const canary = "hunter2"
	for _, url := range []string{
		"mem://user:hunter2@h:1:2/r", "mem://user:hunter2@/zookeeper", "mem://user:hunter2@h/r?x=1", "mem://user:hunter2@h/r?session_timeout=hunter2",
		"mem://user:hunter2", "mem://user:hunter2/r", "mem://user:hunter2?x", "user:hunter2@h/r", "mem:///user:hunter2@h", "mem://us/er:hunter2@h",
		"mem://:hunter2@h", "mem://user:%hunter2@h", "mem://user:hun?hunter2@h", "mem://user:x#hunter2@h", "mem://user:hunter2@h,,i", "mem://user:hunter2@[::1",
		"MEM://user:hunter2@h", "mem://user:hunter2@h/r/../x", "mem://user:hunter2@h/%", "mem://u:s:hunter2@h/../", "zk//user:hunter2@h",
		"mem://user:hunter2@a,b/r", "mem://user:p@hunter2@h/../x", "mem://user:hunter2/@h",
	} {
		c, err := zklock.Open(url)
		if err == nil {
			t.Logf("Open accepts %s", url)
			_ = c.Close()
			continue
		}
		if strings.Contains(err.Error(), canary) || strings.Contains(fmt.Sprintf("%+v %#v", err, err), canary) {
			t.Errorf("%s: %v", url, err)
		}
		if !strings.HasPrefix(err.Error(), "zklock: open: ") {
			t.Errorf("the error does not begin with its prefix: %v", err)
		}
	}
}
