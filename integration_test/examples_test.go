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

// commands are the commands in the README and docs. The value of each is the line of .ci/run,
// or the test, that runs it.
var commands = map[string]string{
	"go run ./examples/quickstart":     `.ci/run: timeout 120 go run ./examples/quickstart`,
	"make test":                        `.ci/run: make --no-print-directory test`,
	"make matrix":                      `.ci/run: make --no-print-directory matrix`,
	"make check":                       `.ci/run: make --no-print-directory check`,
	"make oldest":                      `.ci/run: make --no-print-directory oldest`,
	"make server":                      "TestServerForTryingServesUntilItIsInterrupted",
	"make server SERVERS=3":            "TestServersForTryingGoOnWithoutOne",
	"go run ./integration_test/silent": "TestCommandShowsASilentServer",
	"go run ./examples/http":           "TestReadmeCommandsWork",
	"go run ./examples/gin":            "TestReadmeCommandsWork",
	"go run ./examples/grpc":           "TestReadmeCommandsWork",
	"go -C examples/batch run .":       "TestReadmeCommandsWork",
	"go install ./cmd/zklock":          "TestInstalledFromAClone",
	"make man":                         "TestInstalledFromAClone",
	"export ZKLOCK_URL='zk://127.0.0.1:2181/shop/locks?tick_time=2s'": "TestCommandsOfTheDocsWork",
	"zklock run --every 24h nightly-report -- ./report --all":         "TestCommandsOfTheDocsWork",
	`zklock run --once "$(date -u +%F)" invoices -- ./report`:         "TestCommandsOfTheDocsWork",
	"zklock run reports -- ./report --all":                            "TestCommandsOfTheDocsWork",
	"zklock run --try -q -E 0 reports -- ./report":                    "TestCommandsOfTheDocsWork",
	"zklock run --wait 30s orders/42 customers/7 -- ./move":           "TestCommandsOfTheDocsWork",
	"zklock run --shared prices -- ./read-prices":                     "TestCommandsOfTheDocsWork",
	"zklock run --permits 3 downloads -- ./download":                  "TestCommandsOfTheDocsWork",
	"zklock run --shell reports -- './report | ./upload'":             "TestCommandsOfTheDocsWork",
	"zklock ls":                                            "TestCommandsOfTheDocsWork",
	"zklock ls --sort wait":                                "TestCommandsOfTheDocsWork",
	"zklock ls -o wide orders/":                            "TestCommandsOfTheDocsWork",
	"zklock who orders/42":                                 "TestCommandsOfTheDocsWork",
	"zklock who --tree orders/42":                          "TestCommandsOfTheDocsWork",
	"zklock who -o json orders/42":                         "TestCommandsOfTheDocsWork",
	"zklock watch -o json orders/42":                       "TestWatchFollowsAQueue",
	"zklock elect --label 10.0.0.7:8080 billing -- ./bill": "TestElectRunsItsCommandAgain",
	"zklock elect --observe billing":                       "TestElectObservesTheLeaders",
	"zklock page":                                          "TestPageServesTheLocks",
	"zklock history --log zk1 orders/42":                   "TestHistoryIsWhatItsClientsSaw",
	"zklock history --log zk1 -o bars orders/42":           "TestHistoryIsWhatItsClientsSaw",
	"zklock history --log zk1 --log zk2 --log zk3 -o json": "TestHistoryIsWhatItsClientsSaw",
	"zklock top":                                           "TestTopShowsTheNamesAndLeavesTheTerminal",
	"zklock doctor":                                        "TestCommandsOfTheDocsWork",
	"go run ./examples/leader":                             "TestReadmeCommandsWork",
	"go tool pprof -top -cum http://web-1:9464/debug/zklock/contention http://web-2:9464/debug/zklock/contention": "TestServicesUnderLoad",
	"go tool pprof -peek 'lock orders' 'http://web-1:9464/debug/zklock/contention?seconds=30'":                    "TestServicesUnderLoad",
	"go tool pprof -list 'shop..pay' http://web-1:9464/debug/zklock/contention":                                   "TestServicesUnderLoad",
	"go tool pprof -http=: http://web-1:9464/debug/zklock/contention":                                             "TestServicesUnderLoad",
	"curl 'http://web-1:9464/debug/zklock/held?debug=1'":                                                          "TestServicesUnderLoad",
	"go run ./examples/quickstart -url zk://127.0.0.1:2181/quickstart":                                            "TestExamplesWorkOnAServer",
}

// onServers are the examples with the flag -url. Without it they run on mem:// to their end.
// The tests of the other examples start servers themselves.
var onServers = []string{"gin", "grpc", "http", "leader", "quickstart", "testing"}

// TestDocumentedCommandsAreRun finds the commands in the README and in docs, and checks that
// CI or a test runs each of them.
func TestDocumentedCommandsAreRun(t *testing.T) {
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
			t.Errorf("neither the README nor docs have the command %q", command)
		}
		if line, ok := strings.CutPrefix(by, ".ci/run: "); ok {
			if !bytes.Contains(ci, []byte(line)) {
				t.Errorf(".ci/run does not have the line %q", line)
			}
		} else if !declaredInTests(t, by) {
			t.Errorf("the test %s, which should run %q, does not exist", by, command)
		}
	}
}

// declaredInTests reports whether a test of that name exists.
func declaredInTests(t *testing.T, name string) bool {
	t.Helper()
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "../internal/testkit/*/*_test.go", "../contrib/*/*_test.go"} {
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

// onServersOnly are the examples that cannot run on mem://, with the reason.
var onServersOnly = map[string]string{"herd": "it prints the counters of the server, which mem:// does not have"}

// TestExamplesAreRunInMemoryAndOnAServer: the tests of each example run it on mem://. On a real
// ZooKeeper it is run by its own tests, or by TestExamplesWorkOnAServer.
func TestExamplesAreRunInMemoryAndOnAServer(t *testing.T) {
	programs, err := filepath.Glob("../examples/*/main.go")
	if err != nil || len(programs) < 7 {
		t.Fatalf("only %d examples found, %v", len(programs), err)
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
		// mem:// is either in the test's call of run, or the default of -url.
		inMemory := regexp.MustCompile(`\b(run|demonstrates)\([^\n]*"mem://`).MatchString(own.String()) ||
			regexp.MustCompile(`\brun\(t\.Context\(\), nil, `).MatchString(own.String()) && strings.Contains(string(text), `"url", "mem://`)
		why, exempt := onServersOnly[name]
		switch {
		case exempt && inMemory:
			t.Errorf("%s has a test on mem://: remove its exception %q", dir, why)
		case !exempt && !inMemory:
			t.Errorf("%s needs a test that runs it on mem://", dir)
		}
		if !slices.Contains(onServers, name) && !strings.Contains(own.String(), "ensemble.Start(") {
			t.Errorf("no test runs %s on a real ZooKeeper", dir)
		}
	}
}

// goRun runs a command of go in the root of this module.
func goRun(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = ".."
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestReadmeCommandsWork runs the commands of the README that neither CI nor another test runs
// in exactly this form.
func TestReadmeCommandsWork(t *testing.T) {
	t.Parallel()
	for command, by := range commands {
		if by != "TestReadmeCommandsWork" {
			continue
		}
		args := strings.Fields(command)
		if args[0] != "go" || !slices.Contains(args, "run") {
			t.Fatalf("%q is not of the form go run PACKAGE, which this test needs", command)
		}
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			goRun(t, args[1:]...)
		})
	}
}

// TestExamplesWorkOnAServer runs on a real ZooKeeper the programs that the examples' own tests
// run on mem://. Each program checks its result, and fails if two holders had a lock at the
// same time.
func TestExamplesWorkOnAServer(t *testing.T) {
	t.Parallel()
	hosts := sharedEnsemble(t).Hosts()
	for _, example := range onServers {
		// The server's tick is shorter than the default. So its longest session
		// timeout is shorter, too.
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			goRun(t, "run", "./examples/"+example, "-url", "zk://"+hosts+"/example-"+example+"?session_timeout=4s&tick_time=1s")
		})
	}
}

// TestExamplesAreShort: every file of an example is short enough to be read at once, and every
// example has a test.
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
		if ast.IsGenerated(file) || filepath.Base(dir) == "picture" { // it draws the pictures of a README
			return nil
		}
		if n := bytes.Count(text, []byte("\n")); n >= longest {
			t.Errorf("%s has %d lines, want fewer than %d", path, n, longest)
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
		t.Errorf("only %d examples found", programs)
	}
}
