package sessiondir_test

import (
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/sessiondir"
)

// A path with an @ in it is that of a directory, unless it looks like a URL. The error does not show it.
func TestCheckPath(t *testing.T) {
	for _, path := range []string{"", "/run/shop", "-/run/shop", "/run/shop@1", "-/run/shop@1", "shop", "/run/shop@1:2", "a:b"} {
		if err := sessiondir.CheckPath(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"zk://svc:hunter2", "svc:hunter2@zk1/x", "hunter2@zk1", "-hunter2@zk1", "zk:/svc:hunter2@zk1", "/svc@x:hunter2@zk1"} {
		if err := sessiondir.CheckPath(path); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want an error that does not show it", path, err)
		}
	}
}
