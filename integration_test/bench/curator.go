package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	curatorjars "github.com/zklock/go-zklock/integration_test/curator"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

//go:embed curator/CuratorBench.java
var curatorSource []byte

// compileCurator compiles the worker that uses Curator, into dir, and returns a function
// that makes its command. An error names the missing part.
func compileCurator(dir, hosts string) (start func() (*exec.Cmd, error), version string, err error) {
	jars, version, err := curatorjars.Find()
	if err != nil {
		return nil, "", err
	}
	javac, err := exec.LookPath("javac")
	if err != nil {
		return nil, "", fmt.Errorf("no Java compiler found: %w: install the package default-jdk-headless", err)
	}
	in, err := ensemble.Find()
	if err != nil {
		return nil, "", err
	}
	source := filepath.Join(dir, "CuratorBench.java")
	if err := os.WriteFile(source, curatorSource, 0o644); err != nil {
		return nil, "", err
	}
	path := jars + string(os.PathListSeparator) + dir
	if out, err := exec.Command(javac, "-d", dir, "-cp", path, source).CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	return func() (*exec.Cmd, error) {
		return exec.Command(in.Java, "-Xmx256m", "-Xss512k", "-cp", path, "CuratorBench", hosts), nil
	}, version, nil
}
