package sessiondir

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock/driver"
)

// TestUpperDirectoryOfAnOverlayEndsNothing: a flock on a file of an overlay does not lock the file below it.
// A process that sees the one below must not take it for that of a dead process.
func TestUpperDirectoryOfAnOverlayEndsNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	base := t.TempDir()
	for _, sub := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(base, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(base, "merged")
	options := "lowerdir=" + base + "/lower,upperdir=" + base + "/upper,workdir=" + base + "/work"
	if err := syscall.Mount("overlay", merged, "overlay", 0, options); err != nil {
		t.Skipf("it cannot be mounted: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(merged, 0); err != nil {
			t.Error(err)
		}
	}()
	seen, err := openDirectory(filepath.Join(merged, "d"), syscall.Fstatfs)
	if err != nil {
		t.Fatal(err)
	}
	defer seen.close()
	b := newBench(t)
	below, err := openDirectory(filepath.Join(base, "upper", "d"), syscall.Fstatfs)
	if err != nil {
		t.Fatal(err)
	}
	defer below.close()
	b.dir = seen
	k := b.lives(7, func(r *record) { r.Process.Namespace = "pid:[1]" }) // of a container
	defer k.release()
	b.dir = below
	if b.run(); b.close.attempts > 0 || len(b.left()) != 1 {
		t.Errorf("the session of a process that lives was ended; the log: %s", b.log)
	}
}

// TestProcOfAnotherNamespaceIsRefused: in it, the PID of this process is that of another one.
func TestProcOfAnotherNamespaceIsRefused(t *testing.T) {
	const key = "SESSIONDIR_SELF"
	if os.Getenv(key) != "" {
		if p, err := self(); err == nil {
			t.Fatalf("this process takes itself for %+v", p)
		}
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can make a namespace")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), key+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestOnlyFilesArePaths: a value may happen to be the name of a file.
func TestOnlyFilesArePaths(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("true", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	u := ours
	u.Params = map[string][]string{"tls_insecure_skip_verify": {"true"}, "tls_ca": {"true"}}
	params := ensembleOf(u).Params
	if params["tls_insecure_skip_verify"] != "true" || !filepath.IsAbs(params["tls_ca"]) {
		t.Errorf("the settings are %v", params)
	}
}

// TestStoppedWatcherDoesNotHoldUpOpen: those that watch may be stopped. Each client looks at all files
// once when it is opened.
func TestStoppedWatcherDoesNotHoldUpOpen(t *testing.T) {
	b := newBench(t)
	key := ensembleOf(ours).key()
	stoppedWatcher(t, b, key+suffixWatch)
	stoppedWatcher(t, b, key+suffixSecond)
	b.died(7, nil)
	b.candidate(key)
	wait.Until(t, "the session is ended", func() bool { return slices.Equal(b.close.all(), []int64{7}) })
}

// closerFunc is a driver.SessionCloser.
type closerFunc func(context.Context, driver.Credentials) error

func (f closerFunc) CloseSession(ctx context.Context, c driver.Credentials) error { return f(ctx, c) }

// TestSilentEnsembleHoldsUpNoOther: attempts at servers that do not answer take no turns from those at others.
func TestSilentEnsembleHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		theirs := ours
		theirs.Hosts = []string{"c:3"}
		b.closer = func(e Ensemble) (driver.SessionCloser, error) {
			if e.key() == ensembleOf(ours).key() {
				return b.close, nil
			}
			return closerFunc(func(ctx context.Context, _ driver.Credentials) error { <-ctx.Done(); return ctx.Err() }), nil
		}
		for i := range 2 * maxAtOnce {
			b.died(int64(100+i), func(r *record) { r.Ensemble = ensembleOf(theirs) })
		}
		b.scan(t.Context(), "")
		synctest.Wait()
		died := time.Now()
		b.died(7, nil)
		b.scan(t.Context(), "")
		b.wg.Wait()
		if len(b.close.at) != 1 || b.close.at[0] != died {
			t.Errorf("ended at %v, want once, at %v", b.close.at, died)
		}
	})
}
