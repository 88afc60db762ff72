// Package curator finds the jars of Apache Curator. The tests and the benchmarks run its locks
// next to zklock's.
package curator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Env is the environment variable that names a folder with the jars of a release of Curator and
// all that it needs. Without it the jars are those of the distribution.
const Env = "ZKLOCK_TEST_CURATOR"

// debianJars is the folder where Debian's packages install jars.
const debianJars = "/usr/share/java"

// needed are the jars that Curator needs of those that Debian's packages install.
var needed = []string{"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "slf4j-nop"}

// Find returns the class path of Curator, in java's notation, and its version. Its error
// names the missing part, and how to get it.
func Find() (classPath, version string, err error) {
	folder := os.Getenv(Env)
	if folder == "" {
		return findInstalled()
	}
	named, err := filepath.Glob(filepath.Join(folder, "curator-recipes-*.jar"))
	if err != nil || len(named) != 1 {
		return "", "", fmt.Errorf("%s=%s has no curator-recipes-VERSION.jar: set it to a folder with the jars of Curator", Env, folder)
	}
	return filepath.Join(folder, "*"), versionOf(named[0]), nil
}

func findInstalled() (classPath, version string, err error) {
	jars := make([]string, len(needed))
	for i, name := range needed {
		jars[i] = filepath.Join(debianJars, name+".jar")
		if _, err := os.Stat(jars[i]); err != nil {
			return "", "", fmt.Errorf("no Curator found: %w: install the package libcurator-recipes-java, or set %s", err, Env)
		}
	}
	// The jar without a version in its name is a copy of the jar with a version, or a
	// link to it.
	if named, err := filepath.Glob(filepath.Join(debianJars, "curator-recipes-*.jar")); err == nil && len(named) > 0 {
		version = versionOf(named[0])
	}
	return strings.Join(jars, string(os.PathListSeparator)), version, nil
}

// versionOf returns the version in the name of a jar.
func versionOf(jar string) string {
	return strings.TrimPrefix(strings.TrimSuffix(filepath.Base(jar), ".jar"), "curator-recipes-")
}
