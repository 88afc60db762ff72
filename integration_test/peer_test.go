package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/integration_test/curator"
	"github.com/zklock/go-zklock/integration_test/kazoo"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// A peer is a process that acquires and releases locks on command, with one of four
// libraries: this test binary with zklock or with go-zookeeper's Lock, a Java program with
// Curator, a Python program with kazoo. It reads one line for a command and answers with one
// line:
//
//	acquire KIND PATH               held
//	try KIND PATH                   Curator's mutexes and kazoo's locks: held, or refused
//	release                         released
//	downgrade                       Curator only, after acquire write: downgraded
//	contend KIND PATH ROUNDS GUARD  done, or overlap and the nodes of the others
//	cycle PATH THREADS SECONDS      kazoo only: its figures
//	revocable KIND PATH             Curator only: held, and it can be asked to give the lock back
//	revoked                         Curator only: revoked, once it has been asked
//	revoke NODE                     Curator only: asked, when it has asked the holder with that node
//
// The answer to each of them may also be error and its text. contend checks the exclusion
// with nodes below the znode GUARD. A holder first creates a node there: writer if it holds
// the lock exclusively, or else reader-NAME. Then it lists the nodes of the other holders.
type peer struct {
	t       testing.TB
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	answers chan string
	stderr  bytes.Buffer // complete once answers is closed
}

// peerEnv makes this test binary a peer. Its arguments are a library, the
// servers, the name, and for zklock a root and a dialect.
const peerEnv = "ZKLOCK_TEST_PEER"

// startPeer runs a process until the test is over.
func startPeer(t testing.TB, name string, env []string, command ...string) *peer {
	t.Helper()
	p := &peer{t: t, name: name, cmd: exec.Command(command[0], command[1:]...), answers: make(chan string, 16)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.answers)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.answers <- lines.Text()
		}
		_ = p.cmd.Wait() // a killed process ends with an error, too
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // an error means that it has ended already
		for range p.answers {
		}
	})
	return p
}

// send sends a command to a peer.
func (p *peer) send(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// expect checks that the next answer is want.
func (p *peer) expect(t testing.TB, want string) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	select {
	case got, ok := <-p.answers:
		if !ok {
			t.Fatalf("%s has ended: %s", p.name, p.stderr.String())
		}
		if got != want {
			t.Fatalf("%s answered %q, want %q", p.name, got, want)
		}
	case <-limit.C:
		t.Fatalf("%s did not answer within %v, want %q", p.name, patience, want)
	}
}

// silent fails the test if the peer answers soon. A peer that acquires a lock without a
// contender ahead answers within milliseconds.
func (p *peer) silent(t testing.TB) {
	t.Helper()
	soon := time.NewTimer(150 * time.Millisecond)
	defer soon.Stop()
	select {
	case got := <-p.answers:
		t.Fatalf("%s answered %q, want it to wait", p.name, got)
	case <-soon.C:
	}
}

// goPeers runs this test binary as n peers.
func goPeers(t testing.TB, n int, library, hosts string, more ...string) (peers []*peer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		name := library + strconv.Itoa(i)
		args := append([]string{library, hosts, name}, more...)
		peers = append(peers, startPeer(t, name, []string{peerEnv + "=" + strings.Join(args, " ")}, self))
	}
	return peers
}

// curatorPeers compiles the Java program and runs it as n peers.
func curatorPeers(t testing.TB, n int, hosts string) (peers []*peer) {
	t.Helper()
	jars, version, err := curator.Find()
	if err != nil {
		lacks(t, "Curator (libcurator-recipes-java)", err)
	}
	t.Logf("Curator %s", version)
	javac, err := exec.LookPath("javac")
	if err != nil {
		lacks(t, "a Java compiler (default-jdk-headless)", err)
	}
	in, err := ensemble.Find()
	if err != nil {
		lacks(t, "Java", err)
	}
	classes := t.TempDir()
	path := jars + string(os.PathListSeparator) + classes
	compile := exec.Command(javac, "-J-XX:TieredStopAtLevel=1", "-d", classes, "-cp", path, filepath.Join("interop", "CuratorPeer.java"))
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("javac: %v\n%s", err, out)
	}
	for i := range n {
		name := "curator" + strconv.Itoa(i)
		peers = append(peers, startPeer(t, name, nil, in.Java,
			"-Xmx64m", "-Xss512k", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", path, "CuratorPeer", hosts, name))
	}
	return peers
}

// kazooPeers runs the Python program as n peers.
func kazooPeers(t testing.TB, n int, hosts string) (peers []*peer) {
	t.Helper()
	python, err := kazoo.Find()
	if err != nil && os.Getenv(kazoo.Env) != "" {
		t.Fatal(err)
	}
	if err != nil {
		lacks(t, "kazoo (python3-kazoo)", err)
	}
	t.Logf("kazoo %s", python.Version)
	for i := range n {
		name := "kazoo" + strconv.Itoa(i)
		peers = append(peers, startPeer(t, name, python.Env, python.Program, filepath.Join("interop", "kazoo_peer.py"), hosts, name))
	}
	return peers
}

// lacks skips a test because a program is not installed, or fails it if skipping is
// forbidden.
func lacks(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv(ensemble.RequiredEnv) == "1" {
		t.Fatalf("%s not found: %v (%s=1 forbids skipping)", what, err, ensemble.RequiredEnv)
	}
	t.Skipf("%s not found: %v", what, err)
}

// runPeer runs this binary as a peer, if the environment says so.
func runPeer() (code int, ran bool) {
	text := os.Getenv(peerEnv)
	if text == "" {
		return 0, false
	}
	if err := servePeer(strings.Fields(text)); err != nil {
		fmt.Println("error", err)
		return 1, true
	}
	return 0, true
}

// takes acquires a lock and returns the function that releases it.
type takes func(kind, path string) (release func() error, err error)

func servePeer(args []string) error {
	library, hosts, name := args[0], args[1], args[2]
	conn, events, err := zk.Connect(strings.Split(hosts, ","), 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		return err
	}
	defer conn.Close()
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	take := func(_, path string) (func() error, error) {
		l := zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
		return l.Unlock, l.Lock()
	}
	if library == "zklock" {
		root, dialect := args[3], args[4]
		c, err := zklock.Open(ensemble.URL(hosts, root, quick("dialect", dialect)))
		if err != nil {
			return err
		}
		defer c.Close()
		take = ours(c, root)
	}
	fmt.Println("ready")
	var release func() error
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		answer, err := "", error(nil)
		switch words := strings.Fields(lines.Text()); words[0] {
		case "acquire":
			answer = "held"
			release, err = take(words[1], words[2])
		case "release":
			answer, err = "released", release()
		case "contend":
			answer, err = contend(conn, name, take, words[1:])
		}
		if err != nil {
			answer = "error " + err.Error()
		}
		fmt.Println(answer)
	}
	return nil
}

// ours returns a function that acquires a zklock client's locks by their paths.
func ours(c *zklock.Client, root string) takes {
	return func(kind, path string) (func() error, error) {
		name := strings.TrimPrefix(path, root+"/")
		if kind == "election" {
			return campaign(c, name)
		}
		var a zklock.Acquirer = c.Mutex(name)
		if kind == "read" {
			a = c.RWMutex(name).Reader()
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		l, err := a.Acquire(ctx, zklock.WithoutHandover())
		return func() error { return l.Release(context.Background()) }, err
	}
}

// contend acquires and releases a lock several times. It returns overlap and the nodes below
// the guard that must not be there while the lock is held, or done.
func contend(conn *zk.Conn, name string, take takes, words []string) (string, error) {
	kind, path, guard := words[0], words[1], words[3]
	rounds, err := strconv.Atoi(words[2])
	if err != nil {
		return "", err
	}
	shared, mine := kind == "read", guard+"/writer"
	if shared {
		mine = guard + "/reader-" + name
	}
	for range rounds {
		release, err := take(kind, path)
		if err != nil {
			return "", err
		}
		if _, err := conn.Create(mine, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); errors.Is(err, zk.ErrNodeExists) {
			return "overlap " + mine, nil
		} else if err != nil {
			return "", err
		}
		there, _, err := conn.Children(guard)
		if err := errors.Join(err, conn.Delete(mine, -1), release()); err != nil {
			return "", err
		}
		if shared && slices.Contains(there, "writer") || !shared && len(there) > 1 {
			return fmt.Sprint("overlap ", there), nil
		}
	}
	return "done", nil
}
