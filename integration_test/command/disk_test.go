//go:build linux

package command_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// mountsEnv is set in a process that has a mount namespace of its own.
const mountsEnv = "ZKLOCK_TEST_MOUNTS"

// TestDoctorFindsAFullDisk: ZooKeeper says nothing of a full disk to its clients. A follower whose disk is full goes on
// leaving its leader and coming back, and a leader ends. Each advice of doctor on such a server names the disk, and
// none the network. The test runs in a mount namespace, where each server's data folder is a small file system.
func TestDoctorFindsAFullDisk(t *testing.T) {
	ensemble.Require(t)
	if os.Getenv(mountsEnv) == "" {
		long.Test(t, "servers that leave their quorum")
		if os.Getuid() != 0 {
			t.Skip("needs root")
		}
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDoctorFindsAFullDisk$", "-test.v", "-test.timeout=0")
		cmd.Env = append(os.Environ(), mountsEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) {
			t.Skip("needs mount namespaces:", err)
		}
		t.Logf("%s", out)
		if err != nil {
			t.Error(err)
		}
		return
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what    string
		servers int
		full    func(*ensemble.Ensemble) []*ensemble.Server
		code    int
	}{
		{"a follower", 3, func(e *ensemble.Ensemble) []*ensemble.Server { return e.Followers()[:1] }, 1},
		{"the leader", 3, func(e *ensemble.Ensemble) []*ensemble.Server { l, _ := e.Leader(); return []*ensemble.Server{l} }, 1},
		{"all", 3, (*ensemble.Ensemble).Servers, 69},
		{"the only server", 1, (*ensemble.Ensemble).Servers, 69},
	} {
		t.Run(c.what, func(t *testing.T) {
			e := onSmallDisks(t, ensemble.Config{Servers: c.servers, SyncLimit: 4, MaxSessionTimeout: longTimeout, JavaOptions: []string{"-Dzookeeper.preAllocSize=64"}})
			if _, _, err := run(t, e, "before", "true"); err != nil { // so that the root exists
				t.Fatal(err)
			}
			full := c.full(e)
			for _, s := range full {
				fillDisk(t, s)
			}
			write(t, e, func() bool { // without a quorum, the last one writes nothing
				met := 0
				for _, s := range full {
					if s.Logged("No space left on device") {
						met++
					}
				}
				return met > len(full)/2
			})
			if c.code == 1 { // the others go on
				if _, err := e.AwaitLeader(full...); err != nil {
					t.Fatal(err)
				}
			}
			code, found, end := examined(t, urlOf(e.Hosts()))
			if code != c.code || strings.Contains(found+end, "network") {
				t.Errorf("%d, want %d, and nothing of the network:\n%s\n%s", code, c.code, found, end)
			}
			for _, s := range full {
				if c.what != "all" && !strings.Contains(end, s.Addr()) { // of several, some may only lack a quorum
					t.Errorf("no advice on %v:\n%s", s, end)
				}
			}
			for line := range strings.Lines(end) {
				if line != "to do:\n" && !strings.Contains(line, "disk") {
					t.Errorf("the advice names no disk: %s", line)
				}
			}
		})
	}
}

// onSmallDisks starts servers, each of which has its data on a file system of 4 MB for itself.
func onSmallDisks(t *testing.T, c ensemble.Config) *ensemble.Ensemble {
	t.Helper()
	e := ensemble.Start(t, c)
	for _, s := range e.Servers() {
		saved, dir := filepath.Join(t.TempDir(), "saved"), filepath.Dir(s.Data())
		id, err := os.ReadFile(filepath.Join(dir, "myid"))
		if c.Servers == 1 { // it has none
			err = nil
		}
		if err := errors.Join(err, s.Stop(), s.Backup(saved), syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "myid"), id, 0o644), s.Restore(saved)); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range e.Servers() {
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.AwaitServing(); err != nil {
		t.Fatal(err)
	}
	return e
}

// fillDisk takes what is left of a server's disk. The server has room in the log that it has begun.
func fillDisk(t *testing.T, s *ensemble.Server) {
	t.Helper()
	f, err := os.Create(filepath.Join(filepath.Dir(s.Data()), "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(f, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk of %v ended with %v", s, err)
	}
}

// zeros is a file without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// write writes to the ensemble until enough returns true.
func write(t *testing.T, e *ensemble.Ensemble, enough func() bool) {
	t.Helper()
	conn, _, err := zk.Connect(strings.Split(e.Hosts(), ","), longTimeout, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	defer func() { // ends a call that waits for servers that do not come back
		conn.Close()
		<-written
	}()
	go func() {
		defer close(written)
		_, _ = conn.Create("/full", nil, 0, zk.WorldACL(zk.PermAll))
		for !enough() {
			if _, err := conn.Set("/full", make([]byte, 8<<10), -1); err != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	eventually(t, "the disks are full", enough)
}
