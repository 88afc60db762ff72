//go:build linux

// Package command_test tests the command zklock on real servers. The tests build it, run it as
// a process, and judge what happens from outside: by a file that the commands append to, by the
// states of processes, and by exit codes.
package command_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// patience bounds every wait of a test. A test that reaches it has found a hang.
const patience = 2 * time.Minute

// sideBySide is the number of tests that run at the same time if -parallel is not set, those of
// faults included. The tests wait most of their time. If more of them ran, the processes that start
// at once would make each other late.
const sideBySide = "3"

// build is a command under test, as it was built with some flags.
type build struct {
	flags []string
	main  string // the folder of the command below cmd; "" means zklock
	once  sync.Once
	dir   string
	path  string
	err   error
}

// built has the race detector if this test has it, and plain never has it. kerberized is the
// command with Kerberos.
var (
	built      = &build{flags: raceFlags}
	plain      = &build{}
	kerberized = &build{main: "zklock/zklock-kerberos"}
)

// binary returns the command under test.
func binary(t testing.TB) string {
	t.Helper()
	return built.binary(t)
}

// binary builds the command once.
func (b *build) binary(t testing.TB) string {
	t.Helper()
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "zklock-"); b.err != nil {
			return
		}
		b.path = filepath.Join(b.dir, "zklock")
		cmd := exec.Command("go", append(append([]string{"build", "-o", b.path}, b.flags...), "./cmd/"+cmp.Or(b.main, "zklock"))...)
		cmd.Dir = "../.."
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("go build: %v\n%s", err, out)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}

// config is that of all tests' servers. A follower that is cut off from its leader serves its clients
// for longer than the short session timeout: see ensemble.Config.SyncLimit.
var config = ensemble.Config{Servers: 3, TickTime: tick, SyncLimit: 40, MaxSessionTimeout: longTimeout, ContainerCheckInterval: time.Second}

// shared are three servers for the tests that do not disturb them.
var shared struct {
	once     sync.Once
	ensemble *ensemble.Ensemble
	err      error
}

func servers(t testing.TB) *ensemble.Ensemble {
	t.Helper()
	ensemble.Require(t)
	shared.once.Do(func() {
		shared.ensemble, shared.err = ensemble.New(config)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.ensemble
}

// ownServers starts servers for a test that disturbs them.
func ownServers(t testing.TB) *ensemble.Ensemble {
	t.Helper()
	ensemble.Require(t)
	return ensemble.Start(t, config)
}

func TestMain(m *testing.M) {
	if work() {
		return
	}
	// With nohup, this process was started with HUP ignored, and its children would inherit
	// that. A child begins with the default for a signal that its parent handles.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	flag.Parse()
	runtimeDir, err := os.MkdirTemp("", "zklock-")
	if err == nil {
		err = os.Setenv("XDG_RUNTIME_DIR", runtimeDir) // it has the session directory of the runs
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if parallel := flag.Lookup("test.parallel").Value; parallel.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = parallel.Set(sideBySide)
	}
	code := m.Run()
	if shared.ensemble != nil {
		if err := shared.ensemble.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.RemoveAll(runtimeDir)
	for _, b := range []*build{built, plain} {
		if b.dir != "" {
			os.RemoveAll(b.dir)
		}
	}
	os.Exit(code)
}
