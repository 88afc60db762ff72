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

// TestParseSilent: the flag sets one process with locks to hold, and each fault once, at the server of that process.
func TestParseSilent(t *testing.T) {
	o, err := parse([]string{"-library", "zk", "-silent"})
	if c := o.config; err != nil || c.Workers != 1 || len(c.Long) != 12 || c.TTL != 10*time.Second || len(c.Faults) != 3 || c.Faults[2].Confined != 1 || c.Faults[2].Kind != fault.DropRoute {
		t.Errorf("%+v, %v", c, err)
	}
	o, err = parse([]string{"-library", "zk", "-silent", "-ttl", "20s", "-faults", "leader stopped"})
	if c := o.config; err != nil || c.TTL != 20*time.Second || len(c.Faults) != 1 || c.Faults[0].Lasts != 30*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestSilentSection: the section has the sums of its runs, is in its place, and stays if the results have none of them.
// The figures of the other runs are without it.
func TestSilentSection(t *testing.T) {
	dir := t.TempDir()
	results, document := filepath.Join(dir, "results"), filepath.Join(dir, "comparison.md")
	quietly := cell{Library: "zk", Fault: quiet, Run: 1, Judged: true, Grants: 300, Duration: 10 * time.Second, TTL: 2 * time.Second, Servers: "3.9.5"}
	dropped := cell{
		Library: "zk", Version: "v1", Servers: "3.9.5", Fault: fault.DropRoute, Run: 1, TTL: 10 * time.Second, Judged: true, Grants: 7777,
		Silence: &judge.Silence{Held: 12, Lost: 12, Longest: 6700 * time.Millisecond},
	}
	again := dropped
	again.Run, again.Stuck, again.Silence = 2, []string{"a"}, &judge.Silence{Held: 13, Lost: 11, Sessions: 1, Failed: 3, Longest: 7100 * time.Millisecond}
	circles := cell{Library: "zklock", Fault: philosophers, Duration: time.Minute, TTL: 2 * time.Second, Judged: true, Deadlocks: &judge.Deadlocks{Circles: 2, Broken: 2}}
	runs := func(args []string, cells ...cell) string {
		t.Helper()
		if err := os.WriteFile(results, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			if err := appendCell(results, c); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := run(t.Context(), append([]string{"-comparison", document, "-results", results, "-runs", "0"}, args...)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const row = "| zk.Lock v1 on zookeeper 3.9.5 | is cut off from the client | 2 | 23 | 25 | 1 | 7.1s | 3 | 1 |\n"
	first := runs(nil, quietly)
	runs([]string{"-philosophers", "60s"}, circles)
	for what, text := range map[string]string{
		"alone":              runs([]string{"-silent"}, dropped, again),
		"with the others":    runs(nil, quietly, dropped, again, circles),
		"without its result": runs(nil, quietly),
	} {
		at, other, next := strings.Index(text, silentHead), strings.Index(text, philosophersHead), strings.Index(text, nextHead)
		if strings.Count(text, row) != 1 || at < 0 || at > other || other > next || strings.Contains(text, "7777") {
			t.Errorf("%s, the document is:\n%s", what, text)
		}
		_, text, _ := strings.Cut(text, "## What was done") // the half page before that has a column of them
		if before, _, after := cutSection(text, silentHead); !strings.HasPrefix(after, philosophersHead) || !strings.Contains(first, before) {
			t.Errorf("%s, the section has changed others:\n%s", what, text)
		}
	}
}
