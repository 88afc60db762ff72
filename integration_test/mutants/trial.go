package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// laboratory tries mutants.
type laboratory struct {
	root  string // the module's root folder
	dir   string // a folder for test binaries and the changed sources that they are built from
	seeds int    // the number of simulation runs
	all   []numbered
}

// verdict is the outcome of trying one mutant.
type verdict struct {
	mutant mutant
	caught string // the test that failed; "" if none did
	took   time.Duration
	err    error // why the mutant could not be tried
}

// stage is one run of a package's tests.
type stage struct {
	name  string
	pkg   string // the folder of the package
	run   string // the tests to run, as a regular expression
	skip  string // the tests of these to leave out, as a regular expression
	seeds int    // the number of simulation runs; 0 leaves the test's default
	limit time.Duration
	hang  bool // tests that reach the time limit have failed: the limit is far more than they need
}

// wireSimulation is the simulation whose clients use package zkdriver.
const wireSimulation = "TestSimulationOfTheWire"

// leftOut matches the tests that do not run for every mutant: one takes more than a second, and one
// compares the compiled package, which has mutants, with its files, which have none.
const leftOut = `^(TestCancelledWaitsLeaveNothing|TestNothingElseIsExported)$`

// stages returns the test runs for a mutant, the cheapest first. Together they take less
// than a minute on a machine without other work.
func (l *laboratory) stages(m mutant) []stage {
	var found []stage
	simulated := false
	var named []string
	for _, name := range m.tests {
		switch name {
		case "TestSimulation":
			simulated = true
		case wireSimulation: // a driver's mutants are not those of the core, whose tests do not use it
			return []stage{{name: "simulation", pkg: simulator, run: exactly([]string{name}), seeds: l.seeds, limit: 3 * time.Minute}}
		default:
			named = append(named, name)
		}
	}
	if len(named) > 0 {
		found = append(found, stage{name: "named", pkg: m.tester(), run: exactly(named), limit: 30 * time.Second, hang: true})
	}
	rest := stage{name: "others", pkg: m.testers()[0], run: ".", skip: leftOut, limit: 2 * time.Minute}
	simulation := stage{name: "simulation", pkg: simulator, run: "^TestSimulation$", seeds: l.seeds, limit: 45 * time.Second}
	switch {
	case len(m.testers()) == 1:
		return append(found, rest)
	case simulated:
		return append(found, simulation, rest)
	}
	return append(found, rest, simulation)
}

func exactly(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

// build builds a package's tests together with all mutants that they have to find. It
// does not change the sources: the build's overlay replaces them with other files.
func (l *laboratory) build(ctx context.Context, pkg string) error {
	replace := make(map[string]string)
	for _, changed := range packages(l.all, pkg) {
		s, err := readSource(l.root, changed)
		if err != nil {
			return err
		}
		files, err := s.graft(l.all)
		if err != nil {
			return err
		}
		dir := filepath.Join(l.dir, folder(pkg), folder(changed))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		for name, text := range files {
			replace[filepath.Join(l.root, filepath.FromSlash(changed), name)] = filepath.Join(dir, name)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return err
			}
		}
	}
	description, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return err
	}
	overlay := filepath.Join(l.dir, folder(pkg), "overlay.json")
	if err := os.WriteFile(overlay, description, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o", l.binary(pkg), "./"+pkg)
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not compile with its mutants: %w\n%s", pkg, err, out)
	}
	return nil
}

// binary is the path of a package's test binary.
func (l *laboratory) binary(pkg string) string {
	return filepath.Join(l.dir, folder(pkg)+".test")
}

// folder turns a package's path into the name of a single folder.
func folder(pkg string) string { return strings.ReplaceAll(pkg, "/", "_") }

// try runs the tests with a mutant until one fails.
func (l *laboratory) try(ctx context.Context, m numbered) (v verdict) {
	began := time.Now()
	v.mutant = m.mutant
	defer func() { v.took = time.Since(began) }()
	for _, s := range l.stages(m.mutant) {
		if v.caught, v.err = l.run(ctx, m.number, s); v.caught != "" || v.err != nil {
			return v
		}
	}
	return v
}

// run runs one stage with the mutant of that number, 0 for none. It returns the test
// that failed, or "".
func (l *laboratory) run(ctx context.Context, number int, s stage) (failed string, err error) {
	args := []string{"-test.v", "-test.short", "-test.failfast", "-test.run=" + s.run, fmt.Sprintf("-test.timeout=%v", s.limit)}
	if s.skip != "" {
		args = append(args, "-test.skip="+s.skip)
	}
	// At its own limit, -test.timeout, the binary prints where it hangs. The limit here
	// is for a binary that does not even do that.
	ctx, cancel := context.WithTimeout(ctx, s.limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.binary(s.pkg), args...)
	cmd.Dir = filepath.Join(l.root, filepath.FromSlash(s.pkg))
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", switchVariable, number), "ZKLOCK_LONG=")
	if s.seeds > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("ZKLOCK_RUNS=%d", s.seeds), "ZKLOCK_SEED=", "ZKLOCK_FOR=")
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return "", fmt.Errorf("stage %s: no test matches %s", s.name, s.run)
	case err == nil:
		return "", nil
	case !errors.As(err, &exit):
		return "", err
	case ctx.Err() != nil || bytes.Contains(out, []byte("panic: test timed out")):
		if name := lastStarted(out); s.hang && name != "" {
			return name + " (hangs)", nil
		}
		return "", fmt.Errorf("stage %s did not end within %v", s.name, s.limit)
	}
	return blamed(out), nil
}

var (
	failLine  = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	startLine = regexp.MustCompile(`(?m)^=== RUN +(\S+)`)
)

// blamed finds the test that failed in a test binary's output.
func blamed(out []byte) string {
	fails := failLine.FindAllSubmatch(out, -1)
	switch {
	case len(fails) > 0: // the deepest subtest is printed last
		return string(fails[len(fails)-1][1])
	case bytes.Contains(out, []byte(" goroutines are left:")):
		return "TestMain (goroutines are left)"
	}
	if name := lastStarted(out); name != "" {
		return name + " (panics)"
	}
	return "TestMain"
}

func lastStarted(out []byte) string {
	starts := startLine.FindAllSubmatch(out, -1)
	if len(starts) == 0 {
		return ""
	}
	return string(starts[len(starts)-1][1])
}
