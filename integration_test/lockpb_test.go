package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedProtocCommand: the command in the comment of package lockpb works the first time, in a
// module where nothing imports the package yet. Without protoc, only the part is run that finds the
// package's folder.
func TestDocumentedProtocCommand(t *testing.T) {
	text, err := os.ReadFile("../interceptors/lockpb/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^//\t(protoc -I \. -I "\$\((go list .*)\)" .* shop\.proto)$`).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("the comment has no command for protoc")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gomod := "module example.com/shop\n\ngo 1.26\n"
	for _, name := range []string{"", "/interceptors"} {
		gomod += fmt.Sprintf("\nreplace %s => %q\n", module+name, root+name)
	}
	sums, err := os.ReadFile("../interceptors/go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": gomod,
		"go.sum": string(sums),
		"shop.proto": "syntax = \"proto3\";\npackage shop.v1;\nimport \"zklock/v1/lock.proto\";\noption go_package = \"example.com/shop\";\n" +
			"service Orders {\n  rpc Pay(Order) returns (Order) {\n    option (zklock.v1.lock) = { name: \"orders/{id}\" wait: \"2s\" };\n  }\n}\nmessage Order { string id = 1; }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(command string, env ...string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "GOWORK=off", "GOFLAGS="), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	found := run(m[2])
	if _, err := os.Stat(filepath.Join(found, "zklock/v1/lock.proto")); err != nil {
		t.Fatalf("%s returned %q: %v", m[2], found, err)
	}
	if _, err := exec.LookPath("protoc"); err != nil {
		t.Log("there is no protoc: the rest was not run")
		return
	}
	tools := t.TempDir()
	build := exec.Command("go", "build", "-o", tools, "google.golang.org/protobuf/cmd/protoc-gen-go")
	build.Dir = filepath.Join(root, "interceptors")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run(m[1], "PATH="+tools+":"+os.Getenv("PATH"))
	run("go mod tidy && go vet ./...")
}
