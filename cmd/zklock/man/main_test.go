package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualHasAPageForEachCommand: each page has the text of the command's help.
func TestManualHasAPageForEachCommand(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man")
	if err := write(folder); err != nil {
		t.Fatal(err)
	}
	for page, text := range map[string]string{
		"zklock.1":     "ZKLOCK_URL",
		"zklock-run.1": "lock was lost",
		"zklock-who.1": "in the order of the queue",
	} {
		got, err := os.ReadFile(filepath.Join(folder, page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.ReplaceAll(string(got), `\_`, "_"), text) {
			t.Errorf("%s does not have %q:\n%s", page, text, got)
		}
	}
}
