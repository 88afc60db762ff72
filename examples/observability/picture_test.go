package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The output of two services on one ensemble is enough to draw the pictures.
func TestPictureOfTwoServices(t *testing.T) {
	dir := t.TempDir()
	args := []string{"run", "./picture", "-trace", filepath.Join(dir, "trace.svg"), "-panels", filepath.Join(dir, "panels.svg")}
	var wg sync.WaitGroup
	for _, name := range []string{"north", "south"} {
		file := filepath.Join(dir, name+".json")
		args = append(args, file)
		wg.Go(func() {
			out, err := os.Create(file)
			if err == nil {
				err = run(t.Context(), []string{"-url", "mem://" + t.Name(), "-name", name, "-demo", "5s", "-every", "500ms", "-stdout"}, out, io.Discard)
			}
			if err = errors.Join(err, out.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for file, words := range map[string][]string{
		"trace.svg":  {"zklock.wait", "zklock.hold", "process north", "process south", "the link of zklock.wait"},
		"panels.svg": {"Acquisitions by outcome", "acquired", "p99", "enqueue"},
	} {
		svg, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if err := xml.Unmarshal(svg, new(struct{})); err != nil {
			t.Errorf("%s is not XML: %v", file, err)
		}
		for _, word := range words {
			if !strings.Contains(string(svg), word) {
				t.Errorf("%s lacks %q", file, word)
			}
		}
	}
}
