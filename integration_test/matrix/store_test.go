package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/integration_test/maven"
)

// offline is a store with folders of those names, and without Maven.
func offline(t *testing.T, folders ...string) (s *store, logged *strings.Builder) {
	t.Helper()
	logged = &strings.Builder{}
	s = &store{
		folder: t.TempDir(),
		maven:  func() (*maven.Tool, error) { return nil, errors.New("no Maven here") },
		logf:   func(format string, args ...any) { fmt.Fprintf(logged, format+"\n", args...) },
	}
	for _, f := range folders {
		if err := os.MkdirAll(filepath.Join(s.folder, f), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s, logged
}

func TestServersOfTheCacheNeedNoNetwork(t *testing.T) {
	s, logged := offline(t, "zookeeper-3.5.10/lib", "zookeeper-3.9.5/lib", "zookeeper-3.9.12/lib", "zookeeper-3.90.20/lib", "zookeeper-3.8.7/lib")
	for want, l := range map[string]line{"3.5.10": {name: "3.5", last: "3.5.10"}, "3.9.12": {name: "3.9"}} {
		got, err := s.server(t.Context(), l)
		if err != nil || got.version != want || got.folder != filepath.Join(s.folder, "zookeeper-"+want) {
			t.Errorf("%v: %+v, %v, want %s", l, got, err, want)
		}
	}
	if text := logged.String(); !strings.Contains(text, "no Maven here: using 3.9.12") {
		t.Errorf("logged %q", text)
	}
	for _, l := range []line{{name: "3.10"}, {name: "3.6", last: "3.6.4"}} {
		if got, err := s.server(t.Context(), l); err == nil || !strings.Contains(err.Error(), "no Maven here") {
			t.Errorf("%v: %+v, %v, want an error", l, got, err)
		}
	}
}

// TestLineWithReleasesIsNotUnreleased: without a network, Maven says of every line that it has no
// version. Only a line that is newer than those known to be released may be left out for that.
func TestLineWithReleasesIsNotUnreleased(t *testing.T) {
	s, _ := offline(t, "zookeeper-3.8.7/lib")
	s.maven = func() (*maven.Tool, error) { return nil, fmt.Errorf("list versions: %w", maven.ErrNoVersion) }
	if _, err := s.server(t.Context(), line{name: "3.10"}); err != errNotReleased {
		t.Errorf("3.10: %v, want %v", err, errNotReleased)
	}
	if got, err := s.server(t.Context(), line{name: "3.9"}); err == nil || errors.Is(err, errNotReleased) || err.Error() == errNotReleased.Error() {
		t.Errorf("3.9: %+v, %v, want an error that counts", got, err)
	}
	if got, err := s.server(t.Context(), line{name: "3.8"}); err != nil || got.version != "3.8.7" {
		t.Errorf("3.8: %+v, %v, want the newest of the cache", got, err)
	}
}

func TestLibrariesOfTheCacheNeedNoNetwork(t *testing.T) {
	s, _ := offline(t, "curator-recipes-5.9.0", "curator-recipes-5.10.0", "kazoo/kazoo", "kazoo/kazoo-2.11.0.dist-info")
	if got, err := s.curator(t.Context()); err != nil || got.version != "5.10.0" {
		t.Errorf("Curator: %+v, %v, want 5.10.0", got, err)
	}
	if got, err := s.kazoo(t.Context()); err != nil || got.version != "2.11.0" || got.folder != filepath.Join(s.folder, "kazoo") {
		t.Errorf("kazoo: %+v, %v, want 2.11.0", got, err)
	}
	empty, _ := offline(t, "kazoo")
	if got, err := empty.kazoo(t.Context()); err == nil {
		t.Errorf("a folder without kazoo: %+v, want an error", got)
	}
}
