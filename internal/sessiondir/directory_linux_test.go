package sessiondir

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDirectoriesThatAreRefused: in each of these a session could be ended while its process lives, or
// another user could read its password.
func TestDirectoriesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		what   string
		make   func(path string) error
		reason string
	}{
		{"others may read it", func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o750)) }, "it has mode 0750: other users must not read it, so give it mode 0700"},
		{"others may enter it", func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o711)) }, "mode 0711"},
		{"a symbolic link", func(p string) error { return errors.Join(os.Mkdir(p+"~", 0o700), os.Symlink(p+"~", p)) }, "it is a symbolic link: name the directory itself"},
		{"a link to nothing", func(p string) error { return os.Symlink(p+"~", p) }, "it is a symbolic link"},
		{"a file", func(p string) error { return os.WriteFile(p, nil, 0o600) }, "it is not a directory"},
		{"no parent", func(p string) error { return os.Remove(filepath.Dir(p)) }, "no such file or directory"},
		{"another user's", func(p string) error {
			if os.Geteuid() != 0 {
				return errSkip
			}
			return errors.Join(os.Mkdir(p, 0o700), os.Chown(p, 12345, 0))
		}, "it belongs to user 12345, and this process runs as user 0"},
	} {
		t.Run(c.what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "parent", "d")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			switch err := c.make(path); {
			case err == errSkip:
				t.Skip("only root can give a directory to another user")
			case err != nil:
				t.Fatal(err)
			}
			refuses(t, path, syscall.Fstatfs, c.reason)
		})
	}
}

var errSkip = errors.New("skip")

// refuses fails the test if a directory is not refused with an error that says what and why.
func refuses(t *testing.T, path string, fstatfs func(int, *syscall.Statfs_t) error, reason string) {
	t.Helper()
	d, err := openDirectory(path, fstatfs)
	if err == nil {
		d.close()
		t.Fatalf("the directory is not refused, want %q", reason)
	}
	if text := err.Error(); !strings.HasPrefix(text, "session directory "+path+": ") || !strings.Contains(text, reason) {
		t.Errorf("the error is %q, want %q", text, reason)
	}
}

// TestFileSystems: a flock must reach all users of a file, so all file systems are refused that are not
// known for that, by name.
func TestFileSystems(t *testing.T) {
	of := func(kind int64) func(int, *syscall.Statfs_t) error {
		return func(_ int, st *syscall.Statfs_t) error { set(&st.Type, kind); return nil }
	}
	for kind := range fileSystems {
		d, err := openDirectory(filepath.Join(t.TempDir(), "d"), of(kind))
		if err != nil {
			t.Errorf("%s: %v", fileSystems[kind], err)
			continue
		}
		d.close()
	}
	for kind, name := range refused {
		refuses(t, filepath.Join(t.TempDir(), "d"), of(kind), "it is on "+name+", where a flock may not reach all users of a file")
	}
	refuses(t, filepath.Join(t.TempDir(), "d"), of(0x1234), "it is on a file system of type 0x1234, where")
	refuses(t, filepath.Join(t.TempDir(), "d"), func(int, *syscall.Statfs_t) error { return syscall.EIO }, "fstatfs: input/output error")
}

// TestRealFileSystemsAreRefused mounts file systems, as far as this machine can.
func TestRealFileSystemsAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	for _, c := range []struct {
		name, reason string
		mount        func(source, target string) *exec.Cmd
	}{
		{"ramfs", "it is on ramfs", func(_, target string) *exec.Cmd { return exec.Command("mount", "-t", "ramfs", "none", target) }},
		{"bindfs", "it is on FUSE or virtiofs", func(source, target string) *exec.Cmd { return exec.Command("bindfs", source, target) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := t.TempDir()
			if out, err := c.mount(t.TempDir(), target).CombinedOutput(); err != nil {
				t.Skipf("it cannot be mounted: %v %s", err, out)
			}
			defer func() {
				if err := syscall.Unmount(target, 0); err != nil {
					t.Error(err)
				}
			}()
			refuses(t, filepath.Join(target, "d"), syscall.Fstatfs, c.reason)
		})
	}
}

// TestFilesWithoutNamesGo: a process that dies while it makes a file leaves one without a name. It is
// removed, but not while a process may still be about to name it.
func TestFilesWithoutNamesGo(t *testing.T) {
	b := newBench(t)
	count := func() int {
		entries, err := os.ReadDir(b.path)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	f, name, err := b.dir.create()
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * unnamed)
	if err := os.Chtimes(filepath.Join(b.path, name), old, old); err != nil {
		t.Fatal(err)
	}
	young, _, err := b.dir.create()
	if err != nil {
		t.Fatal(err)
	}
	_ = young.Close()
	if b.run(); count() != 2 {
		t.Errorf("%d files, want the one that is locked and the one that is young", count())
	}
	_ = f.Close()
	if b.run(); count() != 1 {
		t.Errorf("%d files, want the one that is young", count())
	}
}

// TestLockIsSeenInsideAProcess: the flock of a file keeps others out, the same process included, and is
// free when the last descriptor of that opening is closed.
func TestLockIsSeenInsideAProcess(t *testing.T) {
	b := newBench(t)
	k := b.lives(7, func(*record) {})
	files, err := Held()
	if err != nil || len(files) != 1 {
		t.Fatalf("Held returned %d files, %v; want one", len(files), err)
	}
	k.release()
	if b.run(); len(b.close.all()) > 0 {
		t.Error("the session was ended while another descriptor holds the flock")
	}
	_ = files[0].Close()
	b.me.Namespace = "another" // this process lives, so it must not be seen
	if b.run(); len(b.close.all()) != 1 {
		t.Error("the session was not ended after the last descriptor was closed")
	}
}

// set sets the type of a file system, whose size depends on the processor.
func set[T int32 | int64 | uint32](to *T, kind int64) { *to = T(kind) }
