package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// user is the machine of a user: an empty folder, and an environment that fetches the modules
// of this project from the proxy.
type user struct {
	work    string
	env     []string
	version string
}

// build makes a program that imports packages of a module, gets the module by its version, and
// builds the program. It returns what go list -m all prints, and the number of lines in go.sum.
func (u user) build(ctx context.Context, m folderOf, packages []string) (modules []string, sums int, err error) {
	dir, err := os.MkdirTemp(u.work, "program")
	if err != nil {
		return nil, 0, err
	}
	var program strings.Builder
	program.WriteString("package main\n\nimport (\n")
	for _, pkg := range packages {
		fmt.Fprintf(&program, "\t_ %q\n", pkg)
	}
	program.WriteString(")\n\nfunc main() {}\n")
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(program.String()), 0o666); err != nil {
		return nil, 0, err
	}
	for _, command := range [][]string{
		{"go", "mod", "init", "example.com/program"},
		{"go", "get", m.path() + "@" + u.version},
		{"go", "mod", "tidy"},
		{"go", "vet", "./..."},
	} {
		if _, err := output(ctx, dir, u.env, command[0], command[1:]...); err != nil {
			return nil, 0, err
		}
	}
	list, err := output(ctx, dir, u.env, "go", "list", "-m", "all")
	if err != nil {
		return nil, 0, err
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !os.IsNotExist(err) { // a module without requirements has none
		return nil, 0, err
	}
	return strings.Split(list, "\n"), bytes.Count(sum, []byte("\n")), nil
}

// install installs the command by its version, and returns what it says about its version.
func (u user) install(ctx context.Context) (string, error) {
	bin := filepath.Join(u.work, "bin")
	env := append(u.env, "GOBIN="+bin)
	if _, err := output(ctx, u.work, env, "go", "install", module+"/cmd/zklock@"+u.version); err != nil {
		return "", err
	}
	return output(ctx, u.work, u.env, filepath.Join(bin, "zklock"), "--version")
}
