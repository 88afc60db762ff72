package sessiondir_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/sessiondir"
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
	if n := files(c); n != 0 {
		t.Errorf("%d files in a directory that was removed", n)
	}
}
