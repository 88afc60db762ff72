package zklock

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that TRACK_RECORD.md names exists, in the package that it names,
// and every row names one.
func TestTrackRecordNamesTestsThatExist(t *testing.T) {
	text, err := os.ReadFile("TRACK_RECORD.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := make(map[string]string)
	reference := regexp.MustCompile("`(?:([a-z_/]+)\\.)?(Test[A-Za-z0-9]+)`")
	rows := 0
	for line := range strings.Lines(string(text)) {
		found := reference.FindAllStringSubmatch(line, -1)
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| What") {
			if rows++; len(found) == 0 {
				t.Errorf("a row names no test: %s", line)
			}
		}
		for _, m := range found {
			pkg, name := m[1], m[2]
			if pkg == "" {
				pkg = "zklock"
			}
			if declared[pkg] == "" {
				declared[pkg] = testText(t, filepath.Join("..", pkg))
			}
			if !strings.Contains(declared[pkg], "\nfunc "+name+"(t *testing.T)") {
				t.Errorf("package %s has no test %s", pkg, name)
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d rows were found, want at least 40", rows)
	}
}

// testText returns all test files of a folder as one text.
func testText(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests in %s: %v", dir, err)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
