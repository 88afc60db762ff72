package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
	"github.com/zklock/go-zklock/contrib/locktest/judge"
)

// TestDocument: the document and its picture have the results, and nothing else; runs that the file of results
// has are not run again.
func TestDocument(t *testing.T) {
	dir := t.TempDir()
	results, document := filepath.Join(dir, "results"), filepath.Join(dir, "comparison.md")
	cells := []cell{
		{Library: "zk", Fault: quiet, Run: 1, Judged: true, PerSecond: 30, TTL: 2 * time.Second, Version: "v1"},
		{Library: "zk", Fault: quiet, Run: 2, Judged: true, PerSecond: 34, TTL: 2 * time.Second, Version: "v2"},
		{
			Library: "zk", Fault: fault.KillClient, Run: 1, Judged: true, Faults: 4, Grants: 17, TTL: 2 * time.Second,
			Waits:   []time.Duration{3210 * time.Millisecond, 1230 * time.Millisecond},
			Reasons: map[string]int{`release "client-killed-1-2" after 7 tries`: 1, `release "client-killed-1-3" after 10 tries`: 2, "that": 2}, Version: "v2",
		},
		{Library: "redsync", Fault: fault.StopWrite, Run: 1, Verdict: judge.Verdict{Lost: 4}, TTL: 2 * time.Second},
		{Library: "redsync", Fault: fault.KillClient, Run: 1, Faults: 3, Overlapped: 2, Verdict: judge.Verdict{Overlaps: 5, Lost: 2, FencedOverlaps: 3, FencedLost: 2}, Stuck: []string{"a"}, Leftovers: []judge.Leftover{{Name: "b", Last: "failed"}, {Name: "a", Last: "failed: why"}}, TTL: 2 * time.Second},
	}
	for _, c := range cells {
		if err := appendCell(results, c); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-comparison", document, "-results", results, "-runs", "1", "-library", "zk|redsync", "-faults", "client killed"}
	if err := appendCell(results, cell{Library: "redsync", Fault: quiet, Run: 1, Judged: true}); err != nil {
		t.Fatal(err)
	}
	if passed, err := run(t.Context(), args); err != nil || !passed {
		t.Fatalf("%v, %v", passed, err)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| zk.Lock | 0 | 0 | 0 | - | - | - |", "| redsync | 2 | 2 | 1 | - | - | - |", "That cost 4 changes here.",
		"| zk.Lock | 0 | no tokens | 0 | 0 | no tokens | no tokens | 0 | 2 | 3.21s | 3.21s | 32 (30 to 34) |",
		"| redsync | 2 in one run, by 5 grants | no tokens | 2 in one run | 4 in one run | no tokens | no tokens | 1 in one run | 0 | - | - |",
		"**zk.Lock** v1 and v2,", "(3 times): `release \"NAME\" after N tries`", "| client killed | 0 (4) | 2 overlapped holds, 2 lost updates, 1 stuck name (3) |",
		"in 2 of the runs", "For 1 of its 1 stuck names, an acquisition had failed before", `2 overlapped holds, 2 lost updates, 1 stuck name with "client killed"; 4 lost updates with "client stopped in a write"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document lacks %s:\n%s", want, text)
		}
	}
	for _, no := range []string{"etcd concurrency**", "| zklock |"} {
		if strings.Contains(string(text), no) {
			t.Errorf("the document has %s, of which there is no result", no)
		}
	}
	picture, err := os.ReadFile(filepath.Join(dir, "comparison.svg"))
	if n := strings.Count(string(picture), "<circle"); err != nil || n != 2 {
		t.Errorf("the picture has %d waits, %v, want 2", n, err)
	}
	if err := os.WriteFile(results, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), args); err == nil {
		t.Error("a broken file of results was read")
	}
}

// TestPublishedDocument: the page and the picture of the project are those that its results give.
func TestPublishedDocument(t *testing.T) {
	const published = "../../../../docs/comparison"
	cells, err := readCells(published + ".ndjson")
	if err != nil {
		t.Fatal(err)
	}
	if len(cells) == 0 && os.Getenv("ZKLOCK_TEST_REQUIRED") == "" {
		t.Skip("only a clone of the project has the results")
	}
	path := filepath.Join(t.TempDir(), "comparison.md")
	if err := writeDocument(path, cells); err != nil {
		t.Fatal(err)
	}
	for _, ext := range []string{".md", ".svg"} {
		want, err := os.ReadFile(published + ext)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(strings.TrimSuffix(path, ".md") + ext); err != nil || string(got) != string(want) {
			t.Errorf("docs/comparison%s is not that of docs/comparison.ndjson, %v: write it with -comparison docs/comparison.md -results docs/comparison.ndjson -runs 0", ext, err)
		}
	}
}
