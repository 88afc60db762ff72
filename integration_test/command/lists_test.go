//go:build linux

package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/long"
)

const ms = time.Millisecond

// dialRaw opens a plain ZooKeeper session.
func dialRaw(t *testing.T, hosts string) *zk.Conn {
	t.Helper()
	conn, events, err := zk.Connect(strings.Split(hosts, ","), 10*time.Second, zk.WithLogInfo(false), zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	for conn.State() != zk.StateHasSession {
		select {
		case <-events:
		case <-time.After(patience):
			t.Fatal("no session")
		}
	}
	return conn
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// createAll creates many znodes, several hundred at a time.
func createAll(t *testing.T, conn *zk.Conn, requests []*zk.CreateRequest) {
	t.Helper()
	const atATime = 500
	for len(requests) > 0 {
		ops := make([]any, min(atATime, len(requests)))
		for i := range ops {
			ops[i] = requests[i]
		}
		if _, err := conn.Multi(ops...); err != nil {
			t.Fatal(err)
		}
		requests = requests[len(ops):]
	}
}

// maxMemory is how much memory a list of any length may take. The system adds to it what this process had
// when it started the command.
const maxMemory = 400 << 20

// finishSmall is finish for a command that must not take much memory. It logs how much the command
// took. The command is built without the race detector: with it, lists would take five times as
// long.
func finishSmall(t *testing.T, url string, args ...string) string {
	t.Helper()
	p := prepared(plain.binary(t), args...)
	p.cmd.Env = append(os.Environ(), "ZKLOCK_URL="+url)
	p.begin(t)
	if code := p.code(t); code != 0 {
		t.Fatalf("%v: %d, %s", args, code, p.stderr.String())
	}
	usage := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("%v: %v of processor, %d MB", args, (p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Round(10*ms), usage.Maxrss>>10)
	if usage.Maxrss<<10 > maxMemory {
		t.Errorf("%v took %d MB", args, usage.Maxrss>>10)
	}
	return p.stdout.String()
}

// waitsInTree is a waiter's line. On a busy machine a test creates nodes late.
var waitsInTree = regexp.MustCompile(` waits(, created \d+s late)? exclusive,`)

// TestListsOfManyNamesAndALongQueue: ten thousand names, and a queue of five thousand.
func TestListsOfManyNamesAndALongQueue(t *testing.T) {
	manyNames := long.Count(t, "ZKLOCK_NAMES", 2_000, 10_000)
	longQueue := manyNames / 2
	e := servers(t)
	conn := dialRaw(t, e.Hosts())
	all := zk.WorldACL(zk.PermAll)
	const base = "/many"
	// The data of a contender, as zklock writes it.
	url := strings.Replace(urlOf(e.Hosts()), root, base, 1)
	p := start(t, url, nil, "run", "--label", "nightly", "sample", "--", "sleep", "1000")
	var data []byte
	eventually(t, "there is a contender", func() bool {
		nodes, _, err := conn.Children(base + "/sample")
		if err != nil || len(nodes) != 1 {
			return false
		}
		data, _, err = conn.Get(base + "/sample/" + nodes[0])
		return err == nil
	})
	p.signal(t, syscall.SIGTERM)
	p.code(t)
	contender := func(name, n int) string {
		return fmt.Sprintf("_c_0000000a-%04d-0000-0000-%012d-__WRIT__", name%10000, n)
	}
	var requests []*zk.CreateRequest
	for i := range manyNames {
		path := fmt.Sprintf("%s/job-%05d", base, i)
		requests = append(requests, &zk.CreateRequest{Path: path, Data: []byte("zklock"), Acl: all},
			&zk.CreateRequest{Path: path + "/" + contender(i, 1), Data: data, Acl: all, Flags: zk.FlagEphemeral | zk.FlagSequence})
	}
	for n := range longQueue {
		requests = append(requests, &zk.CreateRequest{Path: base + "/job-00000/" + contender(0, n+2), Data: data, Acl: all, Flags: zk.FlagEphemeral | zk.FlagSequence})
	}
	createAll(t, conn, requests)
	if _, err := conn.Sync(base); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	if got := strings.Count(finishSmall(t, url, "ls"), "\n"); got != manyNames+1 {
		t.Errorf("ls: %d lines", got)
	}
	t.Logf("ls took %v", time.Since(began).Round(10*ms))
	var names []struct {
		Name       string
		Contenders []struct{ Held bool }
	}
	if err := json.Unmarshal([]byte(finishSmall(t, url, "ls", "-o", "json")), &names); err != nil || len(names) != manyNames || len(names[0].Contenders) != longQueue+1 || names[manyNames-1].Name != fmt.Sprintf("job-%05d", manyNames-1) {
		t.Errorf("ls -o json: %v, %d names", err, len(names))
	}
	if got := strings.Count(finishSmall(t, url, "ls", "job-0123"), "\n"); got != 11 {
		t.Errorf("ls with a prefix: %d lines", got)
	}
	began = time.Now()
	out := finishSmall(t, url, "who", "job-00000")
	if got := strings.Count(out, "\n"); got != longQueue+2 || strings.Count(out, "holds") != 1 || strings.Count(out, "nightly") != longQueue+1 {
		t.Errorf("the queue: %d lines", got)
	}
	t.Logf("the list of the queue took %v", time.Since(began).Round(10*ms))
	if got := len(waitsInTree.FindAllString(finishSmall(t, url, "who", "--tree", "job-00000"), -1)); got != longQueue {
		t.Errorf("the tree: %d lines of waiters", got)
	}
	began = time.Now()
	if out := finishSmall(t, url, "doctor"); !strings.Contains(out, fmt.Sprintf("%d names in use, with %d contenders", manyNames, manyNames+longQueue)) || !strings.HasSuffix(out, "\nok\n") {
		t.Errorf("%s", out)
	}
	t.Logf("doctor took %v", time.Since(began).Round(10*ms))
}
