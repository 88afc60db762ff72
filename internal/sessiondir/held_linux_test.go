package sessiondir_test

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/sessiondir"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestHeldSessionOfALivingProcess: EndHeld does not end a session whose process exists, although it was
// called for it.
func TestHeldSessionOfALivingProcess(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	dir := t.TempDir() + "/x"
	c, err := sessiondir.Open(e.Connector(), sessiondir.Settings{Path: dir, URL: driver.URL{Scheme: "mem"}, Log: slog.Default})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Connect(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	held, err := sessiondir.Held()
	if err != nil || len(held) != 1 {
		t.Fatalf("%d files, %v", len(held), err)
	}
	opened := 0
	sessiondir.EndHeld(t.Context(), held, func(sessiondir.Ensemble) (driver.Connector, error) { opened++; return e.Connector(), nil }, slog.Default)
	if files, err := filepath.Glob(dir + "/*.session"); err != nil || len(files) != 1 || opened != 1 {
		t.Errorf("the files are %q, %v, after %d connectors; want that of a session that lives", files, err, opened)
	}
	if _, err := held[0].Stat(); err == nil {
		t.Error("the file was not closed")
	}
}
