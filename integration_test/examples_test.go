package integration_test

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// commands are those that the README and docs tell their readers to run, with what runs
// them before: a line of .ci/run, or a test.
var commands = map[string]string{
	"go run ./examples/quickstart": `.ci/run: timeout 120 go run ./examples/quickstart`,
	"make test":                    `.ci/run: make --no-print-directory test`,
	"make check":                   `.ci/run: make --no-print-directory check`,
	"make server":                  "TestServerForTryingServesUntilItIsInterrupted",
	"go run ./examples/http":       "TestReadmeCommandsWork",
	"go run ./examples/gin":        "TestReadmeCommandsWork",
	"go run ./examples/grpc":       "TestReadmeCommandsWork",
	"go run ./examples/quickstart -url zk://127.0.0.1:2181/quickstart": "TestExamplesWorkOnAServer",
	"ZOOKEEPER_HOME=/path/to/apache-zookeeper-3.9.5-bin make test":     "TestHomeIsAnUnpackedRelease",
}

// onServers are the examples that take -url, and run to their end on mem://
// without it. The others have tests on servers of their own.
var onServers = []string{"gin", "grpc", "http", "quickstart", "testing"}

// TestCommandsOfTheReadmeAreRun finds what looks like a command in the README and in docs.
func TestCommandsOfTheReadmeAreRun(t *testing.T) {
	readme := []byte(guide(t))
	found := make(map[string]bool)
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllSubmatch(readme, -1) {
		for line := range strings.Lines(string(block[1])) {
			found[strings.TrimSpace(line)] = true
		}
	}
	for _, m := range regexp.MustCompile("`((?:[A-Z_]+=\\S+ )?(?:go run|make) [^`]+)`").FindAllSubmatch(readme, -1) {
		found[strings.Join(strings.Fields(string(m[1])), " ")] = true
	}
	for command := range found {
		if commands[command] == "" {
			t.Errorf("no test runs %q", command)
		}
	}
	ci, err := os.ReadFile("../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for command, by := range commands {
		if !found[command] {
			t.Errorf("neither the README nor docs have %q", command)
		}
		if line, ok := strings.CutPrefix(by, ".ci/run: "); ok {
			if !bytes.Contains(ci, []byte(line)) {
				t.Errorf(".ci/run has no %q", line)
			}
		} else if !declaredInTests(t, by) {
			t.Errorf("there is no %s", by)
		}
	}
}

// declaredInTests reports whether there is a test of that name.
func declaredInTests(t *testing.T, name string) bool {
	t.Helper()
	for _, pattern := range []string{"*_test.go", "*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte("\nfunc "+name+"(t *testing.T) {")) {
				return true
			}
		}
	}
	return false
}

// onServersOnly are the examples that cannot run on mem://, and why.
var onServersOnly = map[string]string{"herd": "it prints the counters of the server, which the model has none of"}

// TestExamplesAreRunInMemoryAndOnAServer: each has a test of its own for mem://,
// and for a real ZooKeeper one of its own or TestExamplesWorkOnAServer.
func TestExamplesAreRunInMemoryAndOnAServer(t *testing.T) {
	programs, err := filepath.Glob("../examples/*/main.go")
	if err != nil || len(programs) < 7 {
		t.Fatalf("%d examples, %v", len(programs), err)
	}
	for _, program := range programs {
		dir := filepath.Dir(program)
		name := filepath.Base(dir)
		tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var own strings.Builder
		for _, path := range tests {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			own.Write(text)
		}
		text, err := os.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		// By its argument, or by that of -url where it is not given.
		inMemory := regexp.MustCompile(`\b(run|demonstrates)\([^\n]*"mem://`).MatchString(own.String()) ||
			regexp.MustCompile(`\brun\(t\.Context\(\), nil, `).MatchString(own.String()) && strings.Contains(string(text), `"url", "mem://`)
		why, exempt := onServersOnly[name]
		switch {
		case exempt && inMemory:
			t.Errorf("%s has a test on mem://: it need not be excused as %q", dir, why)
		case !exempt && !inMemory:
			t.Errorf("%s has no test that runs it on mem://", dir)
		}
		if !slices.Contains(onServers, name) && !strings.Contains(own.String(), "ensemble.Start(") {
			t.Errorf("%s is not run on a real ZooKeeper", dir)
		}
	}
}

// goRun runs a program of this module from its root.
func goRun(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{"run"}, args...)...)
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("go run %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Those that no other test and nothing in CI runs as it stands in the README.
func TestReadmeCommandsWork(t *testing.T) {
	for command, by := range commands {
		if by != "TestReadmeCommandsWork" {
			continue
		}
		args := strings.Fields(command)
		if len(args) != 3 || args[0] != "go" || args[1] != "run" {
			t.Fatalf("%q is no command for this test", command)
		}
		goRun(t, args[2])
	}
}

// TestExamplesWorkOnAServer runs on a real ZooKeeper what the examples' own
// tests run on mem://. Each of them checks what came of it and fails if anybody
// got in anybody's way.
func TestExamplesWorkOnAServer(t *testing.T) {
	hosts := sharedEnsemble(t).Hosts()
	for _, example := range onServers {
		// The server's ticks are shorter than the defaults, so its session
		// timeouts are too.
		goRun(t, "./examples/"+example, "-url", "zk://"+hosts+"/example-"+example+"?session_timeout=4s&tick_time=1s")
	}
}

// TestExamplesAreShort keeps every file of an example within what one reads at
// a sitting, and every example under test.
func TestExamplesAreShort(t *testing.T) {
	const longest = 150
	programs := 0
	err := filepath.WalkDir("../examples", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir := filepath.Dir(path)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) || filepath.Base(dir) == "picture" { // that one draws the pictures of a README
			return nil
		}
		if n := bytes.Count(text, []byte("\n")); n >= longest {
			t.Errorf("%s has %d lines, want less than %d", path, n, longest)
		}
		if file.Name.Name == "main" && filepath.Base(path) == "main.go" {
			programs++
			if tests, err := filepath.Glob(filepath.Join(dir, "*_test.go")); err != nil || len(tests) == 0 {
				t.Errorf("%s has no test", dir)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if programs < 7 {
		t.Errorf("%d examples only", programs)
	}
}
