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

// TestParsePhilosophers: the flag sets what others do not.
func TestParsePhilosophers(t *testing.T) {
	o, err := parse([]string{"-library", "zklock", "-philosophers", "60s"})
	if c := o.config; err != nil || !c.Philosophers || c.For != time.Minute || c.Workers != 5 || c.Clients != 1 || len(c.Names) != 5 || len(c.Faults) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	o, err = parse([]string{"-library", "zklock", "-philosophers", "60s", "-workers", "2", "-clients", "3", "-names", "4", "-faults", "follower cut off"})
	if c := o.config; err != nil || c.Workers != 2 || c.Clients != 3 || len(c.Names) != 4 || len(c.Faults) == 0 || c.Faults[0].Kind != fault.CutFollower {
		t.Errorf("%+v, %v", c, err)
	}
}

// TestPhilosophersSection: the section has the results of philosophers. It is written alone, or with the
// document, which keeps it if the results have none of them.
func TestPhilosophersSection(t *testing.T) {
	dir := t.TempDir()
	results, document := filepath.Join(dir, "results"), filepath.Join(dir, "comparison.md")
	write := func(cells ...cell) {
		t.Helper()
		if err := os.WriteFile(results, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		for _, c := range cells {
			if err := appendCell(results, c); err != nil {
				t.Fatal(err)
			}
		}
	}
	// runs writes the document, and returns it.
	runs := func(args ...string) string {
		t.Helper()
		if _, err := run(t.Context(), append([]string{"-comparison", document, "-results", results, "-runs", "0"}, args...)); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	faults := cell{Library: "zk", Fault: quiet, Run: 1, Judged: true, Grants: 300, Duration: 10 * time.Second, TTL: 2 * time.Second}
	broken := cell{Library: "zklock", Version: "v9", Fault: philosophers, Duration: time.Minute, For: time.Minute, TTL: 2 * time.Second, Judged: true,
		Deadlocks: &judge.Deadlocks{Meals: 70, Circles: 2, Broken: 2, Times: []time.Duration{time.Second, 2 * time.Second}}}
	lasting := cell{Library: "etcd", Fault: philosophers, Duration: time.Minute, For: time.Minute, TTL: 2 * time.Second, Judged: true,
		Reasons: map[string]int{"why": 3}, Deadlocks: &judge.Deadlocks{Meals: 40, Circles: 4, GivenUp: 3, Several: 1, False: 2}}
	const (
		zklock = "| zklock | 1 | 2 | 2 | 0 | 0 | 0 | 2s | 2s | 0 | 70 |\n| etcd"
		words  = "**etcd concurrency** : in one circle several waits failed; 3 circles lasted until a process was killed; 2 waits failed that were in no circle. " +
			"The most frequent reason why an acquisition or a release failed (3 times): `why`."
		all = "one wait of each circle failed, and the others went on"
	)
	has := func(text string, want bool, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if strings.Count(text, part) != map[bool]int{true: 1}[want] {
				t.Errorf("%q in the document, want %v:\n%s", part, want, text)
			}
		}
	}
	write(faults)
	has(runs(), false, philosophersHead)
	write(broken, lasting)
	first := runs("-philosophers", "60s")
	has(first, true, philosophersHead, zklock, words, all, "| zk.Lock | 0 | no tokens |", nextHead)
	lasting.Deadlocks.Meals = 41
	write(broken, lasting)
	has(runs("-philosophers", "60s"), true, philosophersHead, zklock, "| 41 |", "| zk.Lock | 0 | no tokens |", nextHead)
	write(faults)
	has(runs(), true, philosophersHead, zklock, "| 41 |", "| zk.Lock | 0 | no tokens |")
	write(faults, broken)
	text := runs()
	has(text, true, philosophersHead, "| zklock | 1 |", "| zk.Lock | 0 | no tokens |")
	has(text, false, "| 41 |", "etcd concurrency")
	far := broken
	far.Distance, far.TTL, far.At = 50*time.Millisecond, 10*time.Second, time.Now()
	far.Deadlocks = &judge.Deadlocks{Meals: 30, Circles: 1, Broken: 1, Times: []time.Duration{3 * time.Second}}
	write(faults, broken, far)
	has(runs("-philosophers", "60s"), true, "| zklock | 1 | 2 | 2 | 0 | 0 | 0 | 2s | 2s | 0 | 70 |\n| zklock, 50ms away | 1 | 1 | 1 | 0 | 0 | 0 | 3s | 3s | 0 | 30 |\n",
		"There are no faults, and the TTL is 2s.", "one way, and the TTL\nis 10s.")
	if _, err := run(t.Context(), []string{"-comparison", document, "-results", results, "-runs", "0", "-distance", "50ms"}); err == nil {
		t.Error("the document takes runs at a distance with faults")
	}
	write(faults)
	if _, err := run(t.Context(), []string{"-comparison", document, "-results", results, "-runs", "0", "-philosophers", "60s"}); err == nil {
		t.Error("a section without results was written")
	}
	write(broken)
	if err := os.Remove(document); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), []string{"-comparison", document, "-results", results, "-runs", "0", "-philosophers", "60s"}); err == nil {
		t.Error("a section was written without a document")
	}
}
