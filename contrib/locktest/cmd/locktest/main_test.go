package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/contrib/locktest/fault"
)

// TestParse: a seed has one schedule, and the flags choose the faults.
func TestParse(t *testing.T) {
	faults := func(args ...string) []fault.Fault {
		o, err := parse(append(args, "-library", "zklock"))
		if err != nil {
			t.Fatal(err)
		}
		return o.config.Faults
	}
	seven := faults("-seed", "7", "-for", "60s")
	if len(seven) == 0 || !slices.Equal(seven, faults("-for", "60s", "-seed", "7")) || slices.Equal(seven, faults("-seed", "8", "-for", "60s")) {
		t.Errorf("the schedule of seed 7 is %v", seven)
	}
	for _, f := range faults("-addrs", "127.0.0.1:1,127.0.0.1:2", "-for", "10m") {
		if f.Kind == fault.KillServer || f.Kind.OfServer() && f.Victim > 1 {
			t.Errorf("with two servers of another program: %v of number %d", f, f.Victim)
		}
	}
	for _, f := range faults("-direct", "-for", "10m") {
		if f.Kind.OfNetwork() {
			t.Errorf("without proxies: %v", f)
		}
	}
	for library, want := range map[string]map[fault.Kind]bool{
		"zklock:keep":            {fault.KillLeader: true, fault.CutFollower: true, fault.JumpServer: true},
		"zklock:curator+curator": {fault.KillLeader: true, fault.CutFollower: true, fault.JumpServer: true},
		"zklock":                 {fault.KillLeader: true, fault.CutFollower: true, fault.JumpServer: true},
		"curator":                {fault.KillLeader: true, fault.CutFollower: true, fault.JumpServer: true, fault.JumpClient: true},
		"etcd":                   {fault.KillLeader: true, fault.CutFollower: true},
		"redsync":                {fault.JumpServer: true},
	} {
		o, err := parse([]string{"-library", library})
		if err != nil {
			t.Fatal(err)
		}
		kinds, err := o.kinds()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range []fault.Kind{fault.KillLeader, fault.CutFollower, fault.JumpServer, fault.JumpClient} {
			if slices.Contains(kinds, k) != want[k] {
				t.Errorf("%s: %s can be made: %v", library, k, !want[k])
			}
		}
	}
	if o, err := parse([]string{"-library", "zklock:dir"}); err != nil || !o.config.Direct {
		t.Errorf("zklock:dir: %v; without proxies: %v", err, o.config.Direct)
	}
	if none := faults("-faults", "^$"); len(none) > 0 {
		t.Errorf("without faults: %v", none)
	}
	for args, want := range map[string]string{
		"":                             "-library",
		"-library zk -worker ./worker": "-library",
		"-library zk -names 0":         "above 0",
		"-library zk -faults (":        "-faults",
		"-library zk more":             "more",
		"-library none":                "curator",
		"-library zk:keep":             "no modes",
		"-library zklock+etcd":         "zklock uses servers of zookeeper, and etcd of etcd",
		"-worker none -backend none":   "etcd",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %s", args, err, want)
		}
	}
}

// TestCheck: a history that was written is judged again.
func TestCheck(t *testing.T) {
	const right = `{"at":1,"kind":"acquire","worker":1,"id":1,"name":"a"}
{"at":2,"kind":"granted","worker":1,"id":1,"name":"a","token":"5"}
{"at":3,"kind":"acquire","worker":2,"id":2,"name":"a"}
{"at":4,"kind":"check","worker":1,"id":1,"name":"a"}
{"at":5,"kind":"held","worker":1,"id":1,"name":"a"}
{"at":6,"kind":"granted","worker":2,"id":2,"name":"a","token":"6"}
{"at":7,"kind":"check","worker":2,"id":2,"name":"a"}
{"at":8,"kind":"held","worker":2,"id":2,"name":"a"}
`
	const settled = `{"at":9,"kind":"settled"}
`
	path := filepath.Join(t.TempDir(), "history")
	falls := strings.Replace(right, `"6"`, `"4"`, 1)
	for text, want := range map[string]bool{right + settled: true, falls + settled: false, falls: false} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if passed, err := run(t.Context(), []string{"-check", path}); err != nil || passed != want {
			t.Errorf("passed: %v, %v, want %v of\n%s", passed, err, want, text)
		}
	}
	for _, text := range []string{right, ""} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := run(t.Context(), []string{"-check", path}); err == nil || !strings.Contains(err.Error(), "lacks the end") {
			t.Errorf("%v, want an error for the beginning of a history\n%s", err, text)
		}
	}
	if _, err := run(t.Context(), []string{"-check", path + "missing"}); err == nil {
		t.Error("a file that does not exist was judged")
	}
}
