package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/sessiondir"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
	"github.com/zklock/go-zklock/internal/testkit/proxy"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// sessionFiles returns the names of the files of sessions in a directory.
func sessionFiles(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".watch") {
			names = append(names, e.Name())
		}
	}
	return names
}

// emptied fails the test if a session directory does not become empty.
func emptied(t testing.TB, dir string) {
	t.Helper()
	wait.Until(t, "the session directory is empty", func() bool { return len(sessionFiles(t, dir)) == 0 })
}

// kill kills a worker and returns when that was.
func (p *process) kill() (at int64) {
	p.t.Helper()
	at = monotonic()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
	return at
}

// TestKilledHolderIsFollowedAtOnce kills the holder of a lock again and again while another process of
// the machine waits. The next one has the lock long before the session of the dead one would have
// expired, and not before its death.
func TestKilledHolderIsFollowedAtOnce(t *testing.T) {
	for name, config := range map[string]ensemble.Config{
		"one server":               {},
		"three servers":            {Servers: 3},
		"three servers as shipped": ensemble.Shipped(3),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ensemble.Require(t)
			kills := long.Count(t, "ZKLOCK_KILLS", 3, 20)
			zk := ensemble.Start(t, config)
			dir := filepath.Join(t.TempDir(), "sessions")
			params := quick("session_dir", dir, "pool_max_sessions", "1")
			if config.TickTime != 0 {
				params = keys("session_dir", dir)
			}
			k := task{Role: "hold", Name: "x", URL: ensemble.URL(zk.Hosts(), rootOf(t), params)}
			begin := func() *process {
				p := startWorker(t, k)
				p.await("ready")
				p.start()
				return p
			}
			holder := begin()
			token := holder.await("held").Token
			var waits []time.Duration
			for range kills {
				next := begin()
				next.await("waiting")
				died := holder.kill()
				r := next.await("held")
				waited := time.Duration(r.At - died)
				if waited <= 0 || waited > 5*time.Second {
					t.Errorf("the next one had the lock %v after the death, want it sooner than a session of 10 s expires", waited)
				}
				if r.Token.Compare(token) <= 0 {
					t.Errorf("token %v follows %v", r.Token, token)
				}
				waits, token, holder = append(waits, waited), r.Token, next
			}
			holder.start()
			holder.await("done")
			emptied(t, dir)
			slices.Sort(waits)
			t.Logf("%d kills: half of the next ones had the lock within %v, the slowest after %v", kills, waits[len(waits)/2], waits[len(waits)-1])
		})
	}
}

// TestStoppedWatcherHoldsUpNothing stops one of the two processes that watch for all, and kills the other one. The third one
// frees its locks. When the first one goes on, two watch.
func TestStoppedWatcherHoldsUpNothing(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	zk := ensemble.Start(t, ensemble.Config{})
	dir := filepath.Join(t.TempDir(), "sessions")
	k := task{Role: "hold", URL: ensemble.URL(zk.Hosts(), rootOf(t), quick("session_dir", dir, "pool_max_sessions", "1", "session_timeout", "10s"))}
	begin := func(name string) *process {
		k.Name = name
		p := startWorker(t, k)
		p.await("ready")
		p.start()
		return p
	}
	var all []*process
	watching := func() (n int) {
		for _, p := range all {
			fds, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "fd", "*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, fd := range fds {
				if to, _ := os.Readlink(fd); to == "anon_inode:inotify" {
					n++
				}
			}
		}
		return n
	}
	watcher := begin("y")
	watcher.await("held")
	all = append(all, watcher)
	wait.Until(t, "the first process watches", func() bool { return watching() == 1 })
	holder := begin("x")
	holder.await("held")
	next := begin("x")
	next.await("waiting")
	all = append(all, holder, next)
	wait.Until(t, "two processes watch", func() bool { return watching() == 2 })
	if err := watcher.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	died := holder.kill()
	waited := time.Duration(next.await("held").At - died)
	if waited > 5*time.Second {
		t.Errorf("the next one had the lock %v after the death, want it sooner than a session of 10 s expires", waited)
	}
	t.Logf("the next one had the lock %v after the death", waited.Round(time.Millisecond))
	if err := watcher.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "two processes watch", func() bool { return watching() == 2 })
	for _, p := range []*process{watcher, next} {
		p.start()
		p.await("done")
	}
	emptied(t, dir)
}

// doomed is a connector of a process that dies when its connection is struck.
type doomed struct {
	driver.Connector
	struck <-chan struct{}
	die    func()
}

// CloseSession implements driver.SessionCloser. The proxy closes struck before it resets the connection.
// So the process has died when CloseSession returns, and its reaper does not try again.
func (d doomed) CloseSession(ctx context.Context, cred driver.Credentials) error {
	closer, _ := driver.CloserOf(d.Connector)
	err := closer.CloseSession(ctx, cred)
	select {
	case <-d.struck:
		d.die()
	default:
	}
	return err
}

// through returns an opener of connectors that reach the servers of a file by way of p. It calls die
// after struck is closed.
func through(p *proxy.Proxy, struck <-chan struct{}, die func()) sessiondir.Opener {
	return func(e sessiondir.Ensemble) (driver.Connector, error) {
		conn, err := zkdriver.Driver{}.OpenConnector(driver.URL{Scheme: e.Scheme, Hosts: []string{p.Addr()}})
		return doomed{conn, struck, die}, err
	}
}

// TestCloserIsCutOffAtEachStep ends a process that ends the session of a dead one, or cuts it off from the
// servers, at each step. The next holder then waits for one session timeout more than without it, at
// most: taking a session over is a sign of its life.
func TestCloserIsCutOffAtEachStep(t *testing.T) {
	ensemble.Require(t)
	const timeout = 4 * time.Second
	zk := ensemble.Start(t, ensemble.Config{})
	trap := func(at proxy.Point) func(*proxy.Proxy) (<-chan struct{}, error) {
		return func(p *proxy.Proxy) (<-chan struct{}, error) { return p.KillOn("closeSession", at) }
	}
	for _, c := range []struct {
		step string
		cut  func(p *proxy.Proxy) (struck <-chan struct{}, err error) // struck is nil if the cut is there at once
	}{
		{"before the connection", func(p *proxy.Proxy) (<-chan struct{}, error) { p.Refuse(); return nil, nil }},
		{"before the take-over arrives", func(p *proxy.Proxy) (<-chan struct{}, error) { p.Blackhole(proxy.Up); return nil, nil }},
		{"before the take-over is answered", func(p *proxy.Proxy) (<-chan struct{}, error) { p.Blackhole(proxy.Down); return nil, nil }},
		{"before the request to end it arrives", trap(proxy.BeforeRequest)},
		{"before the end is answered", trap(proxy.BeforeReply)},
	} {
		t.Run(c.step, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "d")
			params := []string{"session_timeout", timeout.String(), "pool_max_sessions", "1"}
			victim := startWorker(t, task{Role: "hold", Name: "x", URL: ensemble.URL(zk.Hosts(), rootOf(t), quick(append(params, "session_dir", dir)...))})
			victim.await("ready")
			victim.start()
			victim.await("held")
			heir := startWorker(t, task{Role: "hold", Name: "x", URL: ensemble.URL(zk.Hosts(), rootOf(t), quick(params...))})
			heir.await("ready")
			heir.start()
			heir.await("waiting")
			p, err := proxy.NewCounting(zk.Hosts())
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			struck, err := c.cut(p)
			if err != nil {
				t.Fatal(err)
			}
			died := victim.kill()
			for range victim.reports { // until it is gone
			}
			limit := time.Second
			if struck != nil {
				limit = patience
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if n, err := sessiondir.Reap(ctx, dir, false, through(p, struck, cancel), slog.Default); n > 0 || !errors.Is(err, ctx.Err()) {
				t.Errorf("the closer has ended %d sessions, %v", n, err)
			}
			r := heir.await("held")
			// A tick for the expiry, and one since a closer that is cut off may still be answered.
			most := time.Second + 2*timeout + 2*500*time.Millisecond + patience/10
			if waited := time.Duration(r.At - died); waited > most {
				t.Errorf("the next one had the lock after %v, want %v at most", waited, most)
			} else {
				t.Logf("the next one had the lock %v after the death", waited.Round(time.Millisecond))
			}
			heir.start()
			heir.await("done")
			// The next closer finds that the session is gone.
			if _, err := sessiondir.Reap(within(t), dir, false, func(e sessiondir.Ensemble) (driver.Connector, error) {
				return zkdriver.Driver{}.OpenConnector(driver.URL{Scheme: e.Scheme, Hosts: e.Hosts})
			}, slog.Default); err != nil {
				t.Error(err)
			}
			if left := sessionFiles(t, dir); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestPasswordOfASessionStaysInItsFile looks for the password of a session in all that a process and those
// that end its session print, and in what others can see of the processes.
func TestPasswordOfASessionStaysInItsFile(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	zk := ensemble.Start(t, ensemble.Config{})
	dir := filepath.Join(t.TempDir(), "d")
	k := task{Role: "hold", Name: "x", URL: ensemble.URL(zk.Hosts(), rootOf(t), quick("session_dir", dir, "pool_max_sessions", "1"))}
	victim := startWorker(t, k)
	victim.await("ready")
	files := sessionFiles(t, dir)
	if len(files) != 1 {
		t.Fatalf("files: %v, want one", files)
	}
	text, err := os.ReadFile(filepath.Join(dir, files[0]))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), canary) {
		t.Error("the file has the password of the user")
	}
	var rec struct{ Password []byte }
	if err := json.Unmarshal([]byte(strings.Split(string(text), "\n")[1]), &rec); err != nil || len(rec.Password) < 8 {
		t.Fatalf("the file has a password of %d bytes, %v", len(rec.Password), err)
	}
	encoded, _ := json.Marshal(rec.Password)
	forms := []string{string(rec.Password), strings.Trim(string(encoded), `"`), fmt.Sprintf("%x", rec.Password), strings.Trim(fmt.Sprint(rec.Password), "[]")}
	heir := startWorker(t, k)
	heir.await("ready")
	for _, p := range []*process{victim, heir} {
		for _, file := range []string{"cmdline", "environ", "comm"} {
			seen, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), file))
			if err != nil {
				t.Fatal(err)
			}
			for _, form := range forms {
				if strings.Contains(string(seen), form) {
					t.Errorf("/proc/PID/%s has the password", file)
				}
			}
		}
	}
	victim.kill()
	heir.start()
	heir.await("held")
	wait.Until(t, "the session of the dead process is ended", func() bool { return len(sessionFiles(t, dir)) == 1 })
	heir.start()
	heir.await("done")
	for range heir.reports {
	}
	log := heir.stderr.String()
	if !strings.Contains(log, "ended the session of a dead process") {
		t.Errorf("the log has no line on the session: %s", log)
	}
	for _, form := range forms {
		if strings.Contains(log, form) {
			t.Error("the log has the password of the session")
		}
	}
}

// TestReaperWithoutPassword: servers that demand a user refuse a reaper that has no password. It leaves the
// session to the next client of that user.
func TestReaperWithoutPassword(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	zk := ensemble.Start(t, ensemble.Config{Extra: []string{"enforce.auth.enabled=true", "enforce.auth.schemes=digest"}})
	since(t, zk, "3.7", "servers have this setting since")
	dir := filepath.Join(t.TempDir(), "d")
	k := task{Role: "hold", Name: "x", URL: ensemble.URL(zk.Hosts(), rootOf(t), quick("session_dir", dir, "pool_max_sessions", "1"))}
	begin := func() *process {
		p := startWorker(t, k)
		p.await("ready")
		p.start()
		p.await("held")
		return p
	}
	victim := begin()
	victim.kill()
	for range victim.reports { // until it is gone
	}
	n, err := sessiondir.Reap(within(t), dir, false, func(e sessiondir.Ensemble) (driver.Connector, error) {
		return zkdriver.Driver{}.OpenConnector(driver.URL{Scheme: e.Scheme, Hosts: e.Hosts, User: e.User})
	}, slog.Default)
	if left := sessionFiles(t, dir); n > 0 || err != nil || len(left) != 1 {
		t.Errorf("the reaper has ended %d sessions, %v, left: %v; want one file", n, err, left)
	}
	heir := begin()
	heir.start()
	heir.await("done")
	for range heir.reports {
	}
	if log := heir.stderr.String(); !strings.Contains(log, "ended the session of a dead process") {
		t.Errorf("the next client has not ended the session; its log: %s", log)
	}
}

// TestManyProcessesDieAtOnce kills all processes but one that share a directory. The one frees the locks of
// all others, with one connection for each session.
func TestManyProcessesDieAtOnce(t *testing.T) {
	long.Parallel(t)
	long.Test(t, "many processes")
	ensemble.Require(t)
	many := long.Count(t, "ZKLOCK_PROCESSES", 60, 60)
	const timeout = 30 * time.Second // a busy machine takes seconds to end so many processes
	zk := ensemble.Start(t, ensemble.Config{Servers: 3, MaxSessionTimeout: timeout, Extra: []string{"maxClientCnxns=0"}})
	dir := filepath.Join(t.TempDir(), "d")
	k := task{Role: "hold", URL: ensemble.URL(zk.Hosts(), rootOf(t), quick("session_dir", dir, "pool_max_sessions", "1", "session_timeout", timeout.String()))}
	begin := func(name string) *process {
		k.Name = name
		p := startWorker(t, k)
		p.await("ready")
		p.start()
		p.await("held")
		return p
	}
	survivor := begin("survivor")
	var fleet []*process
	for i := range many {
		fleet = append(fleet, begin(fmt.Sprint("name-", i)))
	}
	usage := func() (descriptors, threads int) {
		pid := strconv.Itoa(survivor.cmd.Process.Pid)
		fds, err1 := os.ReadDir(filepath.Join("/proc", pid, "fd"))
		tasks, err2 := os.ReadDir(filepath.Join("/proc", pid, "task"))
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		return len(fds), len(tasks)
	}
	fds, threads := usage()
	if fds > 30 {
		t.Errorf("the one that watches %d processes has %d descriptors", many, fds)
	}
	c := dial(t, zk.Hosts(), quick())
	received := func() (n int) {
		for _, s := range zk.Servers() {
			answer, err := s.FourLetter("srvr")
			if err != nil {
				t.Fatal(err)
			}
			_, rest, _ := strings.Cut(answer, "Received: ")
			count, _, _ := strings.Cut(rest, "\n")
			one, err := strconv.Atoi(strings.TrimSpace(count))
			if err != nil {
				t.Fatal(err)
			}
			n += one
		}
		return n
	}
	before, died := received(), time.Now()
	for _, p := range fleet {
		p.kill()
	}
	mostFDs, mostThreads := fds, threads
	wait.Until(t, "all names but one are free", func() bool {
		if f, n := usage(); true {
			mostFDs, mostThreads = max(mostFDs, f), max(mostThreads, n)
		}
		return len(sessionFiles(t, dir)) == 1
	})
	took, packets := time.Since(died), received()-before
	names := 0
	for info, err := range c.Locks(within(t), "") {
		if err != nil {
			t.Fatal(err)
		}
		if names++; info.Name != "survivor" {
			t.Errorf("%s is still held", info.Name)
		}
	}
	if took > timeout*9/10 {
		t.Errorf("it took %v, want less than a session lives", took)
	}
	t.Logf("%d processes, killed at once: their names were free within %v, the servers received %d packets; the survivor had %d descriptors and %d threads, %d and %d at most meanwhile",
		many, took.Round(time.Millisecond), packets, fds, threads, mostFDs, mostThreads)
	survivor.start()
	survivor.await("done")
}
