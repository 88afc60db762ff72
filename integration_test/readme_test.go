package integration_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// snippet is one code block of the README, or of docs, that a test compiles. Its name is in a
// comment in front of it. testdata/readme/NAME.go.txt has the rest of its program.
type snippet struct{ name, language, text string }

var (
	blocks = regexp.MustCompile("(?m)(?:^<!-- snippet: ([a-z-]+) -->\n)?^```([a-z]*)\n((?:.*\n)*?)```$")

	// place is the line of a program that its snippet replaces.
	place = regexp.MustCompile(`(?m)^[\t ]*// SNIPPET$`)

	// expected is the comment at the end of a program with its output.
	expected = regexp.MustCompile(`(?s)\n// Output:\n(.*)$`)
)

// snippets returns the code blocks of the README and of docs that are Go code, or diffs of Go
// code.
func snippets(t *testing.T) []snippet {
	t.Helper()
	var found []snippet
	for _, m := range blocks.FindAllStringSubmatch(guide(t), -1) {
		s := snippet{name: m[1], language: m[2], text: m[3]}
		if s.language != "go" && s.language != "diff" {
			continue
		}
		if s.name == "" {
			t.Errorf("a snippet without a name is not compiled: put <!-- snippet: NAME --> in front of it:\n%s", s.text)
			continue
		}
		found = append(found, s)
	}
	return found
}

// side returns the Go code before or after a diff: the lines with that sign, and the lines
// without a sign.
func side(diff string, sign byte) string {
	var b strings.Builder
	for line := range strings.Lines(diff) {
		if line[0] == sign || line[0] == ' ' {
			b.WriteString(line[1:])
		}
	}
	return b.String()
}

// TestDocumentedSnippetsWork puts every snippet of the README and of docs into a separate module
// that refers to the project by a replace directive. All programs must compile. Those with an
// expected output are run.
func TestDocumentedSnippetsWork(t *testing.T) {
	programs := make(map[string]string) // by name
	for _, s := range snippets(t) {
		switch {
		case s.name == "first":
			if !strings.Contains(s.text, firstURL) || !strings.Contains(s.text, firstDriver) {
				t.Fatalf("the first snippet has no %s and %s:\n%s", firstURL, firstDriver, s.text)
			}
			inMemory := strings.NewReplacer("zk://"+firstURL, "mem:///shop/locks", firstDriver, "zklock/memdriver").Replace(s.text)
			programs["first"] = s.text
			programs["first-mem"] = inMemory + "\n// Output:\n// alone with order 42, token 0000000100000004.00000000\n"
		case s.language == "diff":
			programs[s.name] = surround(t, s.name, side(s.text, '+'))
			if s.name != "from-redsync" && s.name != "from-etcd" { // this module depends on neither
				programs[s.name+"-before"] = surround(t, s.name+"-before", side(s.text, '-'))
			}
		default:
			programs[s.name] = surround(t, s.name, s.text)
		}
	}
	if len(programs) < 12 {
		t.Fatalf("only %d programs found", len(programs))
	}

	mod := emptyModule(t)
	for name, text := range programs {
		dir := filepath.Join(mod, name)
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(mod, "bin") + string(filepath.Separator)
	if out, err := runIn(t, mod, "go", "build", "-o", bin, "./..."); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	ran := 0
	for name, text := range programs {
		m := expected.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		ran++
		want := strings.ReplaceAll(strings.ReplaceAll(m[1], "// ", ""), "//\n", "\n")
		out, err := runIn(t, mod, bin+name)
		if err != nil || out != want {
			t.Errorf("%s: %v, it printed\n%s\nwant\n%s", name, err, out, want)
		}
		t.Logf("%s printed:\n%s", name, out)
	}
	if ran < 9 {
		t.Errorf("%d programs have an expected output, want at least 9: the first one and those of the adapters among them", ran)
	}
}

// firstURL and firstDriver are what the first program of the README uses.
const (
	firstURL    = "127.0.0.1:2181/shop/locks"
	firstDriver = "zklock/zkdriver"
)

// TestFirstProgramOfTheReadmeWorksOnAServer runs it as it stands, but for the address. The server grants the default
// session timeout, as one with ZooKeeper's own settings does.
func TestFirstProgramOfTheReadmeWorksOnAServer(t *testing.T) {
	t.Parallel()
	for _, s := range snippets(t) {
		if s.name != "first" {
			continue
		}
		mod := emptyModule(t)
		server := ensemble.Start(t, ensemble.Config{MaxSessionTimeout: 40 * time.Second})
		text := strings.Replace(s.text, firstURL, server.Hosts()+rootOf(t), 1)
		if err := os.WriteFile(filepath.Join(mod, "main.go"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		out, err := runIn(t, mod, "go", "run", ".")
		if err != nil || !regexp.MustCompile(`^alone with order 42, token [0-9a-f]{16}\.00000000\n$`).MatchString(out) {
			t.Errorf("%v, it printed\n%s", err, out)
		}
		t.Logf("it printed:\n%s", out)
		return
	}
	t.Error("the README has no program with the name first")
}

// runIn runs a command in a module of its own.
func runIn(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// surround puts a snippet into its program.
func surround(t *testing.T, name, text string) string {
	t.Helper()
	around, err := os.ReadFile(filepath.Join("testdata", "readme", name+".go.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(place.FindAllIndex(around, -1)); n != 1 {
		t.Fatalf("testdata/readme/%s.go.txt has %d lines // SNIPPET, want 1", name, n)
	}
	return place.ReplaceAllLiteralString(string(around), text)
}

// emptyModule creates a module that requires only the project's module. It gets the project's
// go.sum, so it builds only with the same dependencies.
func emptyModule(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gomod := "module example.com/readme\n\ngo 1.26\n"
	for _, m := range []string{"", "/examples", "/interceptors", "/middleware/ginlock", "/tracing"} {
		gomod += fmt.Sprintf("\nrequire %s v0.0.0\nreplace %[1]s => %q\n", module+m, root+m)
	}
	sums, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"go.mod": []byte(gomod), "go.sum": sums} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
