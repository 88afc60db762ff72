package sessiondir_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/sessiondir"
	"github.com/zklock/go-zklock/internal/testkit/wait"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestOptionalDirectory: with an optional path, a connector works without the directory if that is not
// usable at the beginning or later. Otherwise its sessions have files.
func TestOptionalDirectory(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	dir := t.TempDir()
	open := func(path string) driver.Connector {
		t.Helper()
		c, err := sessiondir.Open(e.Connector(), sessiondir.Settings{Path: sessiondir.Optional + path, URL: driver.URL{Scheme: "mem"}, Log: slog.Default})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	files := func(c driver.Connector) int {
		t.Helper()
		s, err := c.Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(t.Context())
		held, err := sessiondir.Held()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range held {
			_ = f.Close()
		}
		return len(held)
	}
	if n := files(open(filepath.Join(dir, "missing", "x"))); n != 0 {
		t.Errorf("%d files in a directory that cannot be", n)
	}
	c := open(filepath.Join(dir, "x"))
	if n := files(c); n != 1 {
		t.Errorf("%d files, want 1", n)
	}
	if err := os.RemoveAll(filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	if n := files(c); n != 1 {
		t.Errorf("%d files after the directory was removed: it is made again", n)
	}
	if err := os.WriteFile(filepath.Join(dir, "y"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "y"), filepath.Join(dir, "x")); err == nil {
		t.Fatal("a file has replaced a directory")
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "x")), os.Rename(filepath.Join(dir, "y"), filepath.Join(dir, "x"))); err != nil {
		t.Fatal(err)
	}
	if n := files(c); n != 0 {
		t.Errorf("%d files in a directory that is a file", n)
	}
}

// TestDirectoryIsReplaced: a client whose directory is removed, as systemd does with that of a unit, makes
// another one for its next session, and watches that. A session without a file works, and one line
// says so.
func TestDirectoryIsReplaced(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	dir := filepath.Join(t.TempDir(), "d")
	log := &bytes.Buffer{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	c, err := sessiondir.Open(e.Connector(), sessiondir.Settings{Path: dir, URL: driver.URL{Scheme: "mem"}, Log: func() *slog.Logger { return logger }})
	if err != nil {
		t.Fatal(err)
	}
	connect := func(files int) driver.Session {
		t.Helper()
		s, err := c.Connect(t.Context(), 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if found, _ := filepath.Glob(filepath.Join(dir, "*.session")); len(found) != files {
			t.Errorf("%d files, want %d", len(found), files)
		}
		return s
	}
	watched := func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "*.watch"))
		return len(found) == 2
	}
	first := connect(1)
	wait.Until(t, "the directory is watched, so no file appears while it is removed", watched)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	second := connect(1)
	wait.Until(t, "the new directory is watched", watched)
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(dir, dir+"~"), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	third := connect(0)
	for _, s := range []driver.Session{first, second, third} {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "it is not a directory") {
		t.Errorf("the log has %d lines, want one on the session without a file:\n%s", n, log)
	}
}
