package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// workers is the path of the packages with the workers of this project.
const workers = "github.com/zklock/go-zklock/contrib/locktest/workers/"

var libraryName = regexp.MustCompile(`^[a-z0-9]+$`)

// build builds the worker of a library into dir, and returns its command. It works in a clone of the
// project, whose workspace has the module of the workers.
func build(ctx context.Context, library, dir string) ([]string, error) {
	if !libraryName.MatchString(library) {
		return nil, fmt.Errorf("%q is not the name of a library, such as zklock or zk", library)
	}
	path := filepath.Join(dir, "worker-"+library)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, workers+library)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("build the worker of %s: %w: run this in a clone of the project, or name a program with -worker", library, err)
	}
	return []string{path}, nil
}

// command splits the command of a worker at its spaces.
func command(text string) []string { return strings.Fields(text) }
