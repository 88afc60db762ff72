package ensemble

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// RequiredEnv is the name of an environment variable. If it is 1, a test that needs
// ZooKeeper and does not find it fails instead of being skipped. So skipped tests cannot
// go unnoticed where the tests are meant to run.
const RequiredEnv = "ZKLOCK_TEST_REQUIRED"

// HomeEnv is the environment variable that names an unpacked ZooKeeper release
// to run instead of the distribution's.
const HomeEnv = "ZOOKEEPER_HOME"

// ClassesEnv is the environment variable that names an archive of the servers' classes, which .ci/classes
// makes. Servers use it if it is there. Java ignores one that does not fit.
const ClassesEnv = "ZKLOCK_TEST_CLASSES"

// debianJars is the folder where Debian's packages install jars.
const debianJars = "/usr/share/java"

// Installation is a ZooKeeper installation that can be run.
type Installation struct {
	// Java is the path of the java command.
	Java string

	// ClassPath is the class path of a server, in java's notation.
	ClassPath string

	// Origin is the folder where the server was found, for messages.
	Origin string
}

// Find looks for Java and for ZooKeeper, once for each process. Its error names the
// missing part and how to get it.
var Find = sync.OnceValues(find)

func find() (Installation, error) {
	java, err := findJava()
	if err != nil {
		return Installation{}, err
	}
	if home := os.Getenv(HomeEnv); home != "" {
		in, err := unpacked(java, home)
		if err != nil {
			return Installation{}, fmt.Errorf("%s=%w", HomeEnv, err)
		}
		return in, nil
	}
	main, ok := debianJar("zookeeper")
	if !ok {
		return Installation{}, fmt.Errorf("no ZooKeeper found: install the package zookeeper or set %s to an unpacked release", HomeEnv)
	}
	path := []string{main}
	// The manifest of the main jar names the other jars, except for the logging back
	// end and for the jars that only Netty needs, which TLS uses.
	logging := []string{"slf4j-log4j12", "log4j-1.2"}
	if _, ok := debianJar("log4j-1.2"); !ok {
		logging = []string{"slf4j-simple"}
	}
	for _, name := range append(logging, "netty-codec", "netty-resolver", "netty-transport-native-unix-common") {
		if jar, ok := debianJar(name); ok {
			path = append(path, jar)
		}
	}
	return Installation{
		Java:      java,
		ClassPath: strings.Join(path, string(os.PathListSeparator)),
		Origin:    debianJars,
	}, nil
}

// At returns the installation in the folder of an unpacked release. Its error names the missing
// part and how to get it.
func At(home string) (Installation, error) {
	java, err := findJava()
	if err != nil {
		return Installation{}, err
	}
	return unpacked(java, home)
}

// unpacked returns the installation in a folder.
func unpacked(java, home string) (Installation, error) {
	jars, err := filepath.Glob(filepath.Join(home, "lib", "zookeeper-*.jar"))
	if err != nil || len(jars) == 0 {
		return Installation{}, fmt.Errorf("%s has no lib/zookeeper-*.jar: set it to the folder of an unpacked binary release", home)
	}
	return Installation{Java: java, ClassPath: filepath.Join(home, "lib", "*"), Origin: home}, nil
}

// debianJar returns the path of a jar that a Debian package installs, and whether it
// exists.
func debianJar(name string) (path string, ok bool) {
	path = filepath.Join(debianJars, name+".jar")
	_, err := os.Stat(path)
	return path, err == nil
}

func findJava() (string, error) {
	if home := os.Getenv("JAVA_HOME"); home != "" {
		if java, err := exec.LookPath(filepath.Join(home, "bin", "java")); err == nil {
			return java, nil
		}
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return "", errors.New("no Java found: install a runtime (default-jre-headless) or set JAVA_HOME")
	}
	return java, nil
}

// Require skips the test if no ZooKeeper is installed, or fails it if [RequiredEnv] is 1.
func Require(t testing.TB) {
	t.Helper()
	if _, err := Find(); err != nil {
		if os.Getenv(RequiredEnv) == "1" && os.Getenv(ServersEnv) == "" {
			t.Fatalf("%v (%s=1 forbids skipping)", err, RequiredEnv)
		}
		t.Skipf("%v (with %s=1 this test would fail)", err, RequiredEnv)
	}
}
