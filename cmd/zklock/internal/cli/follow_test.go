//go:build unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/memcontrol"
	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestFollowersEndWithAPermanentError: the servers grant a session that is longer than the one
// that the URL asks for. The exit code says so, as it does for a command that does not go on.
func TestFollowersEndWithAPermanentError(t *testing.T) {
	e := memdriver.New(memdriver.WithTickTime(20 * time.Second))
	defer e.Close()
	for _, args := range []string{"who x", "watch x", "elect --observe x"} {
		if code, _, stderr := command(t, e, strings.Fields(args)...); code != exitConfiguration || !strings.Contains(stderr, "minSessionTimeout") {
			t.Errorf("%s: %d, %q; want %d", args, code, stderr, exitConfiguration)
		}
	}
}

// TestFollowersWaitForTheRoot: if the root does not exist, a command that follows a name shows no
// contender, and then the first one when it arrives.
func TestFollowersWaitForTheRoot(t *testing.T) {
	for args, want := range map[string][2]string{
		"watch x":           {"", " exclusive "},
		"elect --observe x": {" none", " leads "},
	} {
		e := memdriver.New()
		t.Cleanup(func() { _ = e.Close() }) // after the client
		ctx, cancel := context.WithCancel(t.Context())
		read, write := io.Pipe()
		var stderr bytes.Buffer
		ended := make(chan int, 1)
		go func() {
			ended <- execute(ctx, strings.Fields(args), write, &stderr, env("mem://"), func(cfg zklock.Config, opts ...zklock.Option) (*zklock.Client, error) {
				cfg.Connector = e.Connector()
				return zklock.OpenConfig(cfg, opts...)
			})
			write.Close()
		}()
		lines := bufio.NewReader(read)
		next := func() string {
			t.Helper()
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("%s has ended with %d: %s", args, <-ended, stderr.String())
			}
			return line
		}
		if want[0] != "" {
			if line := next(); !strings.Contains(line, want[0]) {
				t.Errorf("%s: %q without a root, want%s", args, line, want[0])
			}
		} else {
			for memcontrol.Of(e).Ops() == (memcontrol.Ops{}) && len(ended) == 0 {
				time.Sleep(time.Millisecond) // until it has looked for the root
			}
		}
		hold(t, client(t, e).Mutex("x"))
		if line := next(); !strings.Contains(line, want[1]) {
			t.Errorf("%s: %q once there is a holder, want%s", args, line, want[1])
		}
		cancel()
		_, _ = io.Copy(io.Discard, lines)
		if code := <-ended; code != 0 {
			t.Errorf("%s: %d, %s", args, code, stderr.String())
		}
	}
}

// TestRevokeWithoutARoot: revoke reports that it finds no such holder, as it does if the root
// exists.
func TestRevokeWithoutARoot(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	if code, _, stderr := command(t, e, "revoke", "x", "_c_1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed-__WRIT__0000000003@0x1"); code != 1 || !strings.Contains(stderr, "not asked") {
		t.Errorf("%d, %q", code, stderr)
	}
}
