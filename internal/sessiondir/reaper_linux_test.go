package sessiondir

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// secret is the password of the sessions of the tests. No log and no error may have it.
const secret = "s3cret-of-a-session"

// ours are the servers of the tests.
var ours = driver.URL{Scheme: "zk", Hosts: []string{"a:1", "b:2"}, User: "u", Password: driver.NewSecret(secret), Params: url.Values{}}

// closes is a driver.SessionCloser that notes which sessions it has ended, and when.
type closes struct {
	mu       sync.Mutex
	fail     int   // how many attempts fail
	why      error // with which error; nil: with one that says nothing
	attempts int
	ended    []int64
	at       []time.Time
}

func (c *closes) CloseSession(ctx context.Context, cred driver.Credentials) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.attempts++; c.attempts <= c.fail {
		return cmp.Or(c.why, errors.New("the connection was cut"))
	}
	if cred.Password.Reveal() != secret {
		return errors.New("another password")
	}
	c.ended, c.at = append(c.ended, cred.ID), append(c.at, time.Now())
	return ctx.Err()
}

func (c *closes) all() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.ended))
}

// bench is a session directory with a reaper, and what that has done.
type bench struct {
	*reaper
	t     *testing.T
	path  string
	close *closes
	log   *bytes.Buffer // only read after wg.Wait
}

// dead is a process that has ended.
var dead = sync.OnceValue(func() process {
	cmd := exec.Command("true")
	p, err := self()
	if err = errors.Join(err, cmd.Run()); err != nil {
		panic(err)
	}
	p.PID = cmd.ProcessState.Pid()
	return p
})

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, path: filepath.Join(t.TempDir(), "d"), close: &closes{}, log: &bytes.Buffer{}}
	d, err := openDirectory(b.path, syscall.Fstatfs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.close)
	me, err := self()
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(b.log, nil))
	b.reaper = newReaper(d, me, func() *slog.Logger { return log }, func(e Ensemble) (driver.SessionCloser, error) {
		if e.key() != ensembleOf(ours).key() {
			return nil, nil
		}
		return b.close, nil
	}, nil)
	t.Cleanup(func() {
		if strings.Contains(b.log.String(), secret) {
			t.Errorf("the log has the password: %s", b.log)
		}
	})
	return b
}

// died makes the file of a session whose process has died. change may change its record.
func (b *bench) died(id int64, change func(*record)) (name string) {
	k := b.lives(id, func(r *record) {
		r.Process = dead()
		if change != nil {
			change(r)
		}
	})
	k.release()
	return k.name
}

// lives makes the file of a session of this process.
func (b *bench) lives(id int64, change func(*record)) *file {
	b.t.Helper()
	r := record{Ensemble: ensembleOf(ours), Session: id, Password: []byte(secret), Timeout: 10 * time.Second, Process: b.me, Directory: b.path}
	change(&r)
	k, err := b.dir.keep(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return k
}

// run looks at all files once, and waits for what follows.
func (b *bench) run() {
	b.t.Helper()
	b.scan(b.t.Context(), ensembleOf(ours).key())
	b.wg.Wait()
}

// left returns the names of the sessions' files that are left.
func (b *bench) left() []string {
	b.t.Helper()
	names, err := b.dir.names("")
	if err != nil {
		b.t.Fatal(err)
	}
	return names
}

// TestSessionOfDeadProcessIsEnded: the session ends, the file goes, and one line says so.
func TestSessionOfDeadProcessIsEnded(t *testing.T) {
	b := newBench(t)
	b.died(7, nil)
	b.died(8, func(r *record) { r.Process.Namespace = "pid:[1]" })            // cannot be seen from here
	living := b.lives(9, func(r *record) { r.Process.Namespace = "pid:[1]" }) // only its flock shows that it lives
	defer living.release()
	over := b.lives(10, func(*record) {})
	if err := over.giveUp(); err != nil { // of a process that lives
		t.Fatal(err)
	}
	b.run()
	if got := b.close.all(); !slices.Equal(got, []int64{7, 8, 10}) {
		t.Errorf("ended %v, want 7, 8 and 10", got)
	}
	if left := b.left(); !slices.Equal(left, []string{living.name}) {
		t.Errorf("left: %v, want %s", left, living.name)
	}
	if n := strings.Count(b.log.String(), "ended the session of a dead process"); n != 2 {
		t.Errorf("%d lines on sessions of dead processes, want 2:\n%s", n, b.log)
	}
	if n := strings.Count(b.log.String(), "ended a session that its process had given up"); n != 1 {
		t.Errorf("%d lines on sessions that were given up, want 1:\n%s", n, b.log)
	}
}

// TestFilesThatEndNothing: each of these files could make a reaper end the session of a process that
// lives, or one that is not zklock's. None is ended.
func TestFilesThatEndNothing(t *testing.T) {
	rewrite := func(change func(data []byte) []byte) func(b *bench, name string) {
		return func(b *bench, name string) {
			path := filepath.Join(b.path, name)
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(data), 0o600)
			}
			if err != nil {
				b.t.Fatal(err)
			}
		}
	}
	do := func(f func(path string) error) func(b *bench, name string) {
		return func(b *bench, name string) {
			if err := f(filepath.Join(b.path, name)); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		what   string
		change func(*record)
		spoil  func(b *bench, name string)
		reason string // in the log; "" for a file that is removed, or left to others without a word
		gone   bool
	}{
		{"a process that exists", func(r *record) { r.Process, _ = self() }, nil, "exists, although the file is not locked", false},
		{"a process that was stopped", stopped(t), nil, "exists, although the file is not locked", false},
		{"another boot", func(r *record) { r.Process.Boot = "x" }, nil, "", true},
		{"another boot, and its device has another number since", func(r *record) { r.Process.Boot = "x" }, rewrite(moved), "", true},
		{"its device has another number", nil, rewrite(moved), "copy", false},
		{"other servers", func(r *record) { r.Ensemble.Hosts = []string{"c:1"} }, nil, "", false},
		{"other servers under the name of ours", func(r *record) { r.Ensemble.Hosts = []string{"c:1"} }, func(b *bench, name string) {
			own := record{Ensemble: ensembleOf(ours), Session: 7}
			if err := os.Rename(filepath.Join(b.path, name), filepath.Join(b.path, own.name())); err != nil {
				b.t.Fatal(err)
			}
		}, "copy", false},
		{"a torn file", nil, rewrite(func(d []byte) []byte { return d[:len(d)-20] }), "torn", false},
		{"a file with one byte changed", nil, rewrite(func(d []byte) []byte { d[len(d)/2] ^= 1; return d }), "torn", false},
		{"a file of another version", nil, rewrite(func(d []byte) []byte { return bytes.Replace(d, []byte(" 1\n"), []byte(" 2\n"), 1) }), "not a session file", false},
		{"an empty file", nil, rewrite(func([]byte) []byte { return nil }), "not a session file", false},
		{"a session without a timeout", func(r *record) { r.Timeout = 0 }, nil, "not a session file", false},
		{"a copy", nil, do(func(path string) error {
			data, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path+"~", data, 0o600), os.Rename(path+"~", path))
		}), "copy", false},
		{"another name", nil, do(func(path string) error {
			return os.Rename(path, strings.Replace(path, "0007.", "0008.", 1))
		}), "copy", false},
		{"a second name", nil, do(func(path string) error { return os.Link(path, path+"~") }), "several names", false},
		{"a file that others can read", nil, do(func(path string) error { return os.Chmod(path, 0o644) }), "mode", false},
		{"a symbolic link", nil, do(func(path string) error {
			return errors.Join(os.Rename(path, path+"~"), os.Symlink(filepath.Base(path)+"~", path))
		}), "", false},
		{"a FIFO", nil, do(func(path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600))
		}), "not a regular file", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := newBench(t)
			name := b.died(7, c.change)
			if c.spoil != nil {
				c.spoil(b, name)
			}
			for range 3 {
				b.run()
			}
			if b.close.attempts > 0 {
				t.Errorf("a session was ended, or an attempt was made")
			}
			if gone := len(b.left()) == 0; gone != c.gone {
				t.Errorf("the file is gone: %t, want %t", gone, c.gone)
			}
			lines := strings.Count(b.log.String(), "\n")
			if want := min(len(c.reason), 1); lines != want || !strings.Contains(b.log.String(), c.reason) {
				t.Errorf("%d lines, want %d with %q:\n%s", lines, want, c.reason, b.log)
			}
			for _, name := range b.left() {
				_ = os.Remove(filepath.Join(b.path, name))
			}
			if b.run(); len(b.noted) > 0 {
				t.Errorf("it remembers files that are gone: %v", b.noted)
			}
		})
	}
}

// moved changes the number of the device that a file names.
func moved(data []byte) []byte {
	r, err := decode(data)
	r.Device++
	data, encodeErr := r.encode()
	if err = errors.Join(err, encodeErr); err != nil {
		panic(err)
	}
	return data
}

// stopped returns a change of a record: its process is one that was stopped.
func stopped(t *testing.T) func(*record) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return func(r *record) {
		r.Process.PID = cmd.Process.Pid
		st, err := readStatus(fmt.Sprint(cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		r.Process.Start = st.start
	}
}

// TestNumberOfAProcessIsUsedAgain: a process with the number of the dead one, but another start, is
// another process.
func TestNumberOfAProcessIsUsedAgain(t *testing.T) {
	b := newBench(t)
	b.died(7, func(r *record) { r.Process, _ = self(); r.Process.Start++ })
	b.run()
	if got := b.close.all(); !slices.Equal(got, []int64{7}) {
		t.Errorf("ended %v, want 7", got)
	}
}

// TestZombieIsDead: a process that has died and whose parent has not waited for it yet is gone.
func TestZombieIsDead(t *testing.T) {
	b := newBench(t)
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	pid := fmt.Sprint(cmd.Process.Pid)
	for st, err := readStatus(pid); !st.ends; st, err = readStatus(pid) {
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	b.died(7, func(r *record) {
		r.Process.PID = cmd.Process.Pid
		st, _ := readStatus(pid)
		r.Process.Start = st.start
	})
	b.run()
	if got := b.close.all(); !slices.Equal(got, []int64{7}) {
		t.Errorf("ended %v, want 7", got)
	}
}

// TestEndIsTriedAgain: attempts go on until one is answered, but no longer than the session can live.
func TestEndIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
		fail  int
		ended bool
	}{{0, true}, {1, true}, {8, true}, {1 << 30, false}} {
		t.Run(fmt.Sprint(c.fail), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				b.close.fail = c.fail
				b.died(7, nil)
				began := time.Now()
				b.run()
				if ended := len(b.close.all()) == 1; ended != c.ended {
					t.Errorf("ended: %t, want %t", ended, c.ended)
				}
				if len(b.left()) > 0 {
					t.Errorf("left: %v", b.left())
				}
				if took := time.Since(began); took > 10*time.Second || !c.ended && took < 9*time.Second {
					t.Errorf("it went on for %v, want 10 s at most, and almost as long for an end that fails", took)
				}
				if !c.ended && (b.close.attempts < 10 || !strings.Contains(b.log.String(), "could not be ended")) {
					t.Errorf("%d attempts; the log: %s", b.close.attempts, b.log)
				}
			})
		})
	}
}

// TestOutageDoesNotCount: without servers no session expires, so a reaper goes on until they are back.
func TestOutageDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.close.fail, b.close.why = 100, driver.ErrNotSent // some 75 s, with a session that has 10
		b.died(7, nil)
		b.run()
		if got := b.close.all(); !slices.Equal(got, []int64{7}) || len(b.left()) > 0 {
			t.Errorf("ended %v, left: %v", got, b.left())
		}
		b.close.fail = 1 << 30
		b.died(8, nil)
		began := time.Now()
		b.run()
		if took := time.Since(began); len(b.left()) > 0 || took < outage || took > outage+time.Minute {
			t.Errorf("it went on for %v, left: %v", took, b.left())
		}
	})
}

// TestReapDoesNotWaitForServers: a reaper that looks once, as a unit that stops waits for it, does not wait
// longer for servers than a session lives. The next one ends the session.
func TestReapDoesNotWaitForServers(t *testing.T) {
	for _, dead := range []int{1, 2 * maxAtOnce} { // some wait for their turn
		t.Run(fmt.Sprint(dead), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t)
				for i := range dead {
					b.died(int64(i+1), nil)
				}
				unreachable := closerFunc(func(ctx context.Context, _ driver.Credentials) error {
					sleep(ctx, 3*time.Second)
					return driver.ErrNotSent
				})
				began := time.Now()
				if n := b.reap(unreachable); n > 0 || len(b.left()) != dead {
					t.Errorf("ended %d, left: %v; want %d files", n, b.left(), dead)
				}
				if took := time.Since(began); took != 10*time.Second {
					t.Errorf("it took %v, want 10 s", took)
				}
				if n := strings.Count(b.log.String(), "its file stays"); n != dead {
					t.Errorf("%d lines on files that stay, want %d:\n%s", n, dead, b.log)
				}
				if n := b.reap(b.close); n != dead || len(b.left()) > 0 {
					t.Errorf("the next one has ended %d, left: %v", n, b.left())
				}
			})
		})
	}
}

// TestCloserDoesNotWaitForServers: the closer of a command goes after a session timeout without servers. It leaves the
// file, and the next process that looks ends the session.
func TestCloserDoesNotWaitForServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		k := b.lives(7, func(r *record) { r.Process = dead() })
		held, err := dup(k.f)
		if err != nil {
			t.Fatal(err)
		}
		k.release() // with the process
		b.close.fail, b.close.why = 1<<30, driver.ErrNotSent
		open := func(Ensemble) (driver.Connector, error) { return closing{SessionCloser: b.close}, nil }
		began := time.Now()
		EndHeld(t.Context(), []*os.File{held}, open, b.reaper.log)
		if took := time.Since(began); took != 10*time.Second || len(b.left()) != 1 {
			t.Errorf("it took %v, left: %v; want 10 s, and the file", took, b.left())
		}
		if !strings.Contains(b.log.String(), "its file stays") {
			t.Errorf("the log: %s", b.log)
		}
		b.close.fail = 0
		if n := b.reap(b.close); n != 1 || len(b.left()) > 0 {
			t.Errorf("the next one has ended %d, left: %v", n, b.left())
		}
	})
}

// reap runs Reap once, with a closer for all servers.
func (b *bench) reap(c driver.SessionCloser) (ended int) {
	b.t.Helper()
	open := func(Ensemble) (driver.Connector, error) { return closing{SessionCloser: c}, nil }
	ended, err := Reap(b.t.Context(), b.path, false, open, b.reaper.log)
	if err != nil {
		b.t.Fatal(err)
	}
	return ended
}

// closing is a connector that only ends sessions.
type closing struct {
	driver.Connector
	driver.SessionCloser
}

func (closing) Close() error { return nil }

// TestRefusedIdentityIsNotTriedAgain: each attempt takes the session over, and so keeps it alive. One more
// is made when the session must have expired. Then the file goes.
func TestRefusedIdentityIsNotTriedAgain(t *testing.T) {
	for _, refusals := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.close.fail, b.close.why = refusals, driver.ErrAuthFailed
			b.died(7, nil)
			for range 3 {
				b.run()
				time.Sleep(6 * time.Second)
			}
			if b.close.attempts != 1 || len(b.left()) != 1 || strings.Count(b.log.String(), "its file stays") != 1 {
				t.Errorf("%d attempts, left: %v; the log: %s", b.close.attempts, b.left(), b.log)
			}
			time.Sleep(6 * time.Second)
			if b.run(); b.close.attempts != 2 || len(b.left()) > 0 {
				t.Errorf("%d attempts, left: %v; the log: %s", b.close.attempts, b.left(), b.log)
			}
			if b.run(); len(b.later)+len(b.noted) > 0 {
				t.Errorf("it remembers files that are gone: %v, %v", b.later, b.noted)
			}
		})
	}
}

// TestRefusedIdentityLeavesTheFile: to another process, which has the identity that the servers demand.
func TestRefusedIdentityLeavesTheFile(t *testing.T) {
	b := newBench(t)
	b.died(7, nil)
	refused := &closes{fail: 1 << 30, why: driver.ErrAuthFailed}
	if n := b.reap(refused); n > 0 || refused.attempts != 1 || len(b.left()) != 1 {
		t.Errorf("ended %d after %d attempts, left: %v", n, refused.attempts, b.left())
	}
	if b.run(); !slices.Equal(b.close.all(), []int64{7}) || len(b.left()) > 0 {
		t.Errorf("the other process has ended %v, left: %v", b.close.all(), b.left())
	}
}

// TestIdentityOfTheFile: sessions of the same servers may belong to several users, or to none.
func TestIdentityOfTheFile(t *testing.T) {
	b := newBench(t)
	files := map[int64]Ensemble{1: ensembleOf(ours)}
	for id, password := range map[int64]string{2: "/a", 3: "/b"} {
		e := ensembleOf(ours)
		e.User, e.Params = "u", map[string]string{"password_file": password}
		files[id] = e
	}
	for id, e := range files {
		b.died(id, func(r *record) { r.Ensemble = e })
		b.died(10+id, func(r *record) { r.Ensemble = e })
	}
	var mu sync.Mutex
	opened, wrong := 0, 0
	_, err := Reap(t.Context(), b.path, false, func(e Ensemble) (driver.Connector, error) {
		mu.Lock()
		defer mu.Unlock()
		opened++
		return closing{SessionCloser: closerFunc(func(_ context.Context, cred driver.Credentials) error {
			mu.Lock()
			defer mu.Unlock()
			if e.Params["password_file"] != files[cred.ID%10].Params["password_file"] {
				wrong++
			}
			return nil
		})}, nil
	}, b.reaper.log)
	if err != nil || opened != 3 || wrong > 0 {
		t.Errorf("%d connectors, %d sessions ended by that of another user, %v; want 3 and none", opened, wrong, err)
	}
}

// TestFilesOfAnotherBootAreCleared: also those of other ensembles, which have no client here any longer.
// Other files of theirs stay.
func TestFilesOfAnotherBootAreCleared(t *testing.T) {
	b := newBench(t)
	theirs := func(r *record) { r.Ensemble.Hosts = []string{"c:1"} }
	stays := b.died(7, theirs)
	b.died(8, func(r *record) { theirs(r); r.Process.Boot = "x" })
	path := filepath.Join(b.path, b.died(9, func(r *record) { theirs(r); r.Process.Boot = "x" }))
	data, err := os.ReadFile(path)
	if err = errors.Join(err, os.WriteFile(path, moved(data), 0o600)); err != nil {
		t.Fatal(err)
	}
	b.clear(ensembleOf(ours).key())
	if left := b.left(); !slices.Equal(left, []string{stays}) {
		t.Errorf("left: %v, want %s", left, stays)
	}
}

// TestLossDelayPassesFirst: between the death and the end of the session is loss_delay.
func TestLossDelayPassesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.died(7, func(r *record) { r.LossDelay = 3 * time.Second })
		died := time.Now()
		b.run()
		if len(b.close.at) != 1 || b.close.at[0].Sub(died) != 3*time.Second {
			t.Errorf("ended at %v, want 3 s after %v", b.close.at, died)
		}
	})
}

// TestReaperThatStopsLeavesTheRest: a reaper that is cut off at any step leaves the file, and the next one
// ends the session.
func TestReaperThatStopsLeavesTheRest(t *testing.T) {
	for step := range 12 {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t)
			b.close.fail = 4
			b.died(7, func(r *record) { r.LossDelay = 20 * time.Millisecond })
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(step)*10*time.Millisecond)
			defer cancel()
			b.scan(ctx, "")
			b.wg.Wait()
			if ended := len(b.close.all()); len(b.left()) != 1-ended {
				t.Fatalf("step %d: %d sessions ended, and left: %v", step, ended, b.left())
			}
			b.run()
			if got := b.close.all(); !slices.Equal(got, []int64{7}) || len(b.left()) > 0 {
				t.Errorf("step %d: ended %v, left: %v", step, got, b.left())
			}
		})
	}
}
