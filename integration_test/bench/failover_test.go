package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/long"
)

// killer returns a runner for a server of the test.
func killer(t *testing.T) *runner {
	ensemble.Require(t)
	zk := ensemble.Start(t, ensemble.Config{TickTime: 500 * time.Millisecond})
	return &runner{servers: &servers{hosts: zk.Hosts()}, say: t.Logf}
}

// TestKilledHoldersAreFollowed kills a few holders of the libraries that are written in Go, with ZooKeeper.
func TestKilledHoldersAreFollowed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("session directories work on Linux only")
	}
	t.Parallel()
	const kills = 2
	pattern := "session_dir"
	if long.On() {
		pattern += "|^zk"
	}
	b := killer(t)
	programs, err := buildTools(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	res, err := b.killAll(t.Context(), programs, 1, regexp.MustCompile(pattern), kills)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range slices.Concat(successions()...) {
		if !regexp.MustCompile(pattern).MatchString(s.name) {
			continue
		}
		if f := res.Turns[s.name]; len(f) != 1 || f[0]["total"] != kills || f[0]["p50"] <= 0 || f[0]["p99"] < f[0]["p50"] {
			t.Errorf("%s: %v (%s), want figures of %d kills", s.name, f, res.Absent[s.name], kills)
		} else if s.dirs > 0 && f[0]["p99"] > 8 {
			t.Errorf("%s: %v, want each sooner than a session of 10 s expires", s.name, f)
		}
	}
}

// TestLibrariesThatDoNotExcludeFailTheRun: a tool that cannot measure a library leaves its row out. If the judge says that a
// library failed, there is no table.
func TestLibrariesThatDoNotExcludeFailTheRun(t *testing.T) {
	b := &runner{servers: &servers{hosts: "127.0.0.1:1"}, say: t.Logf}
	for status, broken := range map[string]bool{"1": true, "2": false} {
		tool := filepath.Join(t.TempDir(), "tool")
		if err := os.WriteFile(tool, []byte("#!/bin/sh\nexit "+status+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
		res, err := b.killAll(t.Context(), tools{locktest: tool}, 1, regexp.MustCompile("^(zk.Lock|redsync)$"), 1)
		if errors.Is(err, errBroken) != broken || err != nil && !broken {
			t.Errorf("exit status %s: %v", status, err)
		}
		if want := map[bool]int{false: 2}[broken]; len(res.Absent) != want || len(res.Who) > 0 {
			t.Errorf("exit status %s: without %v, and with %v", status, res.Absent, res.Who)
		}
	}
}

func TestSuccessorsHaveARowEach(t *testing.T) {
	one := result{Row: killed(1).name, row: killed(1), Turns: map[string][]figures{inSight: {{"p50": .0125, "p99": .3}}, etcd: {{"p50": 51.23, "p99": 60}}}}
	three := result{Row: killed(3).name, row: killed(3), Turns: map[string][]figures{inSight: {{"p50": .04, "p99": 1.5}}}}
	table := report{Results: []result{one, three}}.figures()[0]
	head, lines := table.head, table.lines
	if want := []string{"1 server: p50", "p99", "3 servers: p50", "p99"}; !slices.Equal(head[2:], want) {
		t.Errorf("head %q, want %q", head, want)
	}
	if want := [][]string{
		{inSight, "session 10s", "0.0125", "0.3", "0.04", "1.5"},
		{etcd, "lease 60s", "51.2", "60", "", ""},
	}; !reflect.DeepEqual(lines, want) {
		t.Errorf("lines %q, want %q", lines, want)
	}
	var met []bool
	for _, v := range verdicts([]result{one, three}) {
		met = append(met, v.OK)
	}
	if want := []bool{true, false}; !slices.Equal(met, want) {
		t.Errorf("targets met: %v, want %v, on three servers", met, want)
	}
}
