package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// library is a lock library with a worker in this project.
type library struct {
	name    string // of the worker's folder
	title   string
	backend string // the servers that it uses
	goes    bool   // the worker is a program in Go
	tokens  bool   // the library has fencing tokens
	moded   bool   // the worker has modes
	mode    string // the mode to use; "": the first one
	version func(ctx context.Context, command []string) string

	// For the document: what the library promises, and how the worker uses it.
	promise, use string

	build func(ctx context.Context, source, dir string) (command []string, err error)
}

// workers is the path of the module with the workers of this project.
const workers = "github.com/zklock/go-zklock/contrib/locktest/workers"

// The environment variables that name folders with releases of Curator and of kazoo, as Maven and pip fetch
// them. Without these, the distribution's packages are used.
const (
	curatorEnv = "LOCKTEST_CURATOR"
	kazooEnv   = "LOCKTEST_KAZOO"
)

// chosen returns the libraries that a text names, such as zk, zklock:keep or zklock:curator+curator. Several must
// use the same servers.
func chosen(text string) ([]library, error) {
	var all []library
	for _, name := range strings.Split(text, "+") {
		l, err := find(name)
		if err != nil {
			return nil, err
		}
		if all = append(all, l); l.backend != all[0].backend {
			return nil, fmt.Errorf("%s: %s uses servers of %s, and %s of %s", text, all[0].name, all[0].backend, l.name, l.backend)
		}
	}
	return all, nil
}

// find returns the library with a name. A mode of its worker may follow after a colon.
func find(name string) (library, error) {
	name, mode, moded := strings.Cut(name, ":")
	var names []string
	for _, l := range libraries {
		if l.name == name && moded && !l.moded {
			return l, fmt.Errorf("the worker of %s has no modes", name)
		}
		if l.name == name {
			l.mode = mode
			return l, nil
		}
		names = append(names, l.name)
	}
	return library{}, fmt.Errorf("%q is not the name of a library: choose %s", name, strings.Join(names, ", "))
}

// command builds the worker into dir, and returns its command. It works in a clone of the project, whose
// workspace has the module of the workers.
func (l library) command(ctx context.Context, dir string) ([]string, error) {
	source, err := exec.CommandContext(ctx, "go", "list", "-m", "-f={{.Dir}}", workers).Output()
	if err != nil {
		return nil, fmt.Errorf("find the worker of %s: %w: run this in a clone of the project, or name a program with -worker", l.name, err)
	}
	command, err := l.build(ctx, filepath.Join(strings.TrimSpace(string(source)), l.name), dir)
	if err != nil {
		return nil, fmt.Errorf("build the worker of %s: %w", l.name, err)
	}
	if l.mode != "" {
		command = append(command, l.mode)
	}
	return command, nil
}

// output runs a program and returns what it prints, without spaces around; "" if it fails.
func output(ctx context.Context, program string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, program, args...).Output() // a version that is not known is left out
	return strings.TrimSpace(string(out))
}

// buildGo builds a worker in Go.
func buildGo(ctx context.Context, source, dir string) ([]string, error) {
	path := filepath.Join(dir, "worker-"+filepath.Base(source))
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, workers+"/"+filepath.Base(source)).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return []string{path}, err
}

// module returns a function that says the version of a module of Go.
func module(path string) func(context.Context, []string) string {
	return func(ctx context.Context, _ []string) string {
		return output(ctx, "go", "list", "-m", "-f={{.Version}}", path)
	}
}

// commit says which commit of this project was used, with a + if its files were changed. What the comparison and the track
// record write into docs does not count.
func commit(ctx context.Context, _ []string) string {
	name := output(ctx, "git", "describe", "--always", "--tags")
	if output(ctx, "git", "status", "--porcelain", "--", ":/", ":!/docs/comparison.*", ":!/docs/track-record.*") != "" {
		name += "+"
	}
	return name
}

// buildCurator compiles the worker of Curator.
func buildCurator(ctx context.Context, source, dir string) ([]string, error) {
	javac, err := exec.LookPath("javac")
	if err != nil {
		return nil, errors.New("no Java compiler found: install the package default-jdk-headless")
	}
	jars, err := curatorJars()
	if err != nil {
		return nil, err
	}
	path := jars + string(os.PathListSeparator) + dir
	out, err := exec.CommandContext(ctx, javac, "-d", dir, "-cp", path, filepath.Join(source, "Worker.java")).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	return []string{"java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", path, "Worker"}, nil
}

// curatorJars is the class path of Curator.
func curatorJars() (string, error) {
	if folder := os.Getenv(curatorEnv); folder != "" {
		return filepath.Join(folder, "*"), nil
	}
	var jars []string
	for _, name := range []string{"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "slf4j-nop", "guava"} {
		jar := "/usr/share/java/" + name + ".jar"
		if _, err := os.Stat(jar); err != nil {
			return "", fmt.Errorf("no Curator found: install the package libcurator-recipes-java, or set %s to a folder with its jars", curatorEnv)
		}
		jars = append(jars, jar)
	}
	return strings.Join(jars, string(os.PathListSeparator)), nil
}

var curatorJar = regexp.MustCompile(`curator-recipes-([0-9.]+)\.jar`)

func curatorVersion(context.Context, []string) string {
	folder := os.Getenv(curatorEnv)
	if folder == "" {
		folder = "/usr/share/java"
	}
	found, _ := filepath.Glob(filepath.Join(folder, "curator-recipes-*.jar")) // the pattern is right
	for _, jar := range found {
		if m := curatorJar.FindStringSubmatch(jar); m != nil {
			return m[1]
		}
	}
	return ""
}

// buildKazoo finds a Python that can import kazoo.
func buildKazoo(ctx context.Context, source, _ string) ([]string, error) {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		command := []string{python, filepath.Join(source, "worker.py")}
		if folder := os.Getenv(kazooEnv); folder != "" {
			command = append([]string{"env", "PYTHONPATH=" + folder}, command...)
		}
		if kazooVersion(ctx, command) != "" {
			return command, nil
		}
	}
	return nil, fmt.Errorf("no kazoo found: install the package python3-kazoo, or set %s to a folder that pip has installed kazoo in", kazooEnv)
}

func kazooVersion(ctx context.Context, command []string) string {
	args := append(append([]string{}, command[1:len(command)-1]...), "-c", "import kazoo.version; print(kazoo.version.__version__)")
	return output(ctx, command[0], args...)
}
