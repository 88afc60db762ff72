package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/zklock/go-zklock/integration_test/ensemble"
)

//go:embed curator/CuratorBench.java
var curatorSource []byte

// debianJars is the folder where Debian's packages install jars.
const debianJars = "/usr/share/java"

// compileCurator compiles the worker that uses Curator, into dir, and returns a function
// that makes its command. An error names the missing part.
func compileCurator(dir, hosts string) (start func() (*exec.Cmd, error), version string, err error) {
	jars := []string{"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "slf4j-nop"}
	for i, jar := range jars {
		jars[i] = filepath.Join(debianJars, jar+".jar")
		if _, err := os.Stat(jars[i]); err != nil {
			return nil, "", fmt.Errorf("no Curator found: %w: install the package libcurator-recipes-java", err)
		}
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
	path := strings.Join(append(jars, dir), string(os.PathListSeparator))
	if out, err := exec.Command(javac, "-d", dir, "-cp", path, source).CombinedOutput(); err != nil {
		return nil, "", fmt.Errorf("javac: %w\n%s", err, out)
	}
	// The jar without a version in its name is a copy of the jar with a version, or a
	// link to it.
	if named, err := filepath.Glob(filepath.Join(debianJars, "curator-recipes-*.jar")); err == nil && len(named) > 0 {
		version = strings.TrimPrefix(strings.TrimSuffix(filepath.Base(named[0]), ".jar"), "curator-recipes-")
	}
	return func() (*exec.Cmd, error) {
		return exec.Command(in.Java, "-Xmx256m", "-Xss512k", "-cp", path, "CuratorBench", hosts), nil
	}, version, nil
}
