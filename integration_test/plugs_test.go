package integration_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/long"
)

// cleanEnv is the environment variable that makes TestPlugsBuild begin with empty caches, as on a
// machine that has never built a Go program. It downloads the modules then, and takes minutes.
const cleanEnv = "ZKLOCK_TEST_CLEAN_CACHE"

// plugged are the libraries of the modules below contrib.
var plugged = map[string][]string{
	"connectlock": {"connectrpc.com/connect"},
	"contention":  {"github.com/google/pprof"},
	"gocronlock":  {"github.com/go-co-op/gocron/v2"},
	"kerberos":    {"github.com/jcmturner/gokrb5/v8"},
	"migratelock": {"github.com/pressly/goose/v3", "github.com/golang-migrate/migrate/v4"},
}

// tools are the libraries of those modules below contrib that no service imports.
var tools = map[string][]string{
	"locktest":  {"github.com/anishathalye/porcupine"},
	"zklockvet": {"golang.org/x/tools", "github.com/golangci/plugin-module-register"},
}

// plugCommands are the commands in the READMEs of contrib, and the file with the line that runs
// each. TestPlugsBuild runs the others: go mod edit.
var plugCommands = map[string]string{
	"go test -run=Example -v":            `../Makefile: $(patsubst %,./%/...,$(ADAPTERS))`,
	"go test -run=ShortJob -slots=60 -v": `../integration_test/record/suite.go: "-run=ShortJob", "-slots=60"`,
}

// TestImportsGraphWithoutPlugs: a program that does not use a plug does not load the modules of
// the plug's library, not even into its module graph.
func TestImportsGraphWithoutPlugs(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "mod", "graph")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	graph := string(out)
	if !strings.Contains(graph, "github.com/go-zookeeper/zk@") {
		t.Fatalf("go mod graph does not have the module's own requirements:\n%s", graph)
	}
	if found, err := filepath.Glob("../contrib/*/go.mod"); err != nil || len(found) != len(plugged)+len(tools) {
		t.Errorf("the modules below contrib are %q, and the test knows those of %d", found, len(plugged)+len(tools))
	}
	modules := maps.Clone(plugged)
	maps.Copy(modules, tools)
	for plug, libraries := range modules {
		gomod, err := os.ReadFile("../contrib/" + plug + "/go.mod")
		if err != nil {
			t.Fatal(err)
		}
		for _, library := range libraries {
			if !regexp.MustCompile(`(?m)^(require |\t)` + regexp.QuoteMeta(library) + " v").Match(gomod) {
				t.Errorf("%s does not require %s", plug, library)
			}
			if strings.Contains(graph, library+"@") {
				t.Errorf("the module requires %s, which belongs into contrib/%s only", library, plug)
			}
		}
	}
}

// TestPlugsBuild follows the README of each plug: a new module with the README's replace
// directives and its snippets builds.
func TestPlugsBuild(t *testing.T) {
	t.Parallel()
	long.Test(t, "a module for each plug is built")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "GOWORK=off", "GOFLAGS="+os.Getenv("GOFLAGS")+" -mod=mod")
	clean := os.Getenv(cleanEnv) != ""
	if clean {
		cache := t.TempDir()
		// A module cache is read-only by default; the test's folder must be removable.
		env = append(env, "GOMODCACHE="+filepath.Join(cache, "mod"), "GOCACHE="+filepath.Join(cache, "build"), env[len(env)-1]+" -modcacherw")
	}
	for plug := range plugged {
		t.Run(plug, func(t *testing.T) {
			readme, err := os.ReadFile("../contrib/" + plug + "/README.md")
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			run := func(name string, args ...string) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, name, args...)
				cmd.Dir, cmd.Env = dir, env
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
				}
			}
			run("go", "mod", "init", "example.com/program")
			replaced := false
			for _, command := range commandsOf(readme) {
				switch args := strings.Fields(strings.ReplaceAll(command, "/path/to/clone", root)); {
				case strings.HasPrefix(command, "go mod edit "):
					run(args[0], args[1:]...)
					replaced = true
				case plugCommands[command] == "":
					t.Errorf("no test runs %q", command)
				}
			}
			if !replaced {
				t.Fatal("the README does not say how to replace the modules")
			}
			programs := 0
			for _, m := range blocks.FindAllStringSubmatch(string(readme), -1) {
				if m[2] != "go" || m[1] == "" {
					t.Errorf("a block that no test compiles: want ```go, and <!-- snippet: NAME --> in front of it:\n%s", m[3])
					continue
				}
				programs++
				if err := os.Mkdir(filepath.Join(dir, m[1]), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, m[1], "main.go"), []byte(surround(t, m[1], m[3])), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if programs == 0 {
				t.Fatal("the README has no snippet")
			}
			if clean {
				run("go", "mod", "tidy")
			} else { // what the tests of the plug have used is in the cache, and no more is needed
				sums, err := os.ReadFile("../contrib/" + plug + "/go.sum")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			run("go", "build", "-o", t.TempDir()+string(filepath.Separator), "./...")
		})
	}
}

// TestDocumentedPlugs: each README is a screen or two, and has the same parts. What its
// commands name exists.
func TestDocumentedPlugs(t *testing.T) {
	for plug := range plugged {
		readme, err := os.ReadFile("../contrib/" + plug + "/README.md")
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(readme), "\n"); n > 60 {
			t.Errorf("the README of %s has %d lines, want 60 at most", plug, n)
		}
		if found := regexp.MustCompile(`(?m)^## What (is promised|the seams? cannot express)$`).FindAll(readme, -1); len(found) != 2 {
			t.Errorf("the README of %s has %q, want what is promised, and what the seam cannot express", plug, found)
		}
		if !slices.Contains(commandsOf(readme), "go test -run=Example -v") {
			t.Errorf("the README of %s does not say how to run its examples", plug)
		}
	}
	// The table of gocronlock has code too.
	readme, err := os.ReadFile("../contrib/gocronlock/README.md")
	if err != nil {
		t.Fatal(err)
	}
	program := strings.ReplaceAll(surround(t, "gocronlock", ""), "gocronlock.", "")
	cells := regexp.MustCompile("(?m)^\\|[^|]+\\| `(.*)` \\|$").FindAllSubmatch(readme, -1)
	if len(cells) != 4 {
		t.Errorf("the table of gocronlock has %d rows with code, want 4", len(cells))
	}
	for _, c := range cells {
		if !strings.Contains(program, string(c[1])) {
			t.Errorf("testdata/readme/gocronlock.go.txt does not have %q", c[1])
		}
	}
	for command, by := range plugCommands {
		path, line, _ := strings.Cut(by, ": ")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), line) {
			t.Errorf("%s does not have %q, which runs %q", path, line, command)
		}
	}
}

// commandsOf returns the commands of go in a README.
func commandsOf(readme []byte) (found []string) {
	for _, m := range regexp.MustCompile("`(go [^`]+)`").FindAllSubmatch(readme, -1) {
		found = append(found, strings.Join(strings.Fields(string(m[1])), " "))
	}
	return found
}
