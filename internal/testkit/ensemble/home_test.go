package ensemble_test

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// TestHomeIsAnUnpackedRelease links the installed jars into a folder as a binary release
// of ZooKeeper has them: lib/zookeeper-VERSION.jar, and the other jars next to it. It runs
// a server from there in a second process, because Find looks for an installation only
// once in a process.
func TestHomeIsAnUnpackedRelease(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	found, err := ensemble.Find()
	if err != nil {
		t.Fatal(err)
	}
	if home := os.Getenv(ensemble.HomeEnv); home != "" {
		if found.Origin != home {
			t.Errorf("found in %s, want %s", found.Origin, home)
		}
		answer, err := ensemble.Start(t, ensemble.Config{}).Server(0).FourLetter("srvr")
		if err != nil {
			t.Fatal(err)
		}
		t.Log(regexp.MustCompile(`(?m)^Zookeeper version: .*`).FindString(answer))
		return
	}

	home := t.TempDir()
	lib := filepath.Join(home, "lib")
	must(t, os.Mkdir(lib, 0o777))
	for _, jar := range strings.Split(found.ClassPath, string(os.PathListSeparator)) {
		for _, path := range append(named(t, jar), jar) {
			name := strings.Replace(filepath.Base(path), "zookeeper.jar", "zookeeper-3.8.0.jar", 1)
			if err := os.Symlink(path, filepath.Join(lib, name)); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
		}
	}
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ensemble.HomeEnv+"="+home)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Zookeeper version: ") {
		t.Errorf("with %s: %v\n%s", ensemble.HomeEnv, err, out)
	}
}

// named returns the jars that the manifest of a jar adds to the class path.
func named(t *testing.T, jar string) []string {
	t.Helper()
	z, err := zip.OpenReader(jar)
	must(t, err)
	defer z.Close()
	f, err := z.Open("META-INF/MANIFEST.MF")
	must(t, err)
	defer f.Close()
	text, err := io.ReadAll(f)
	must(t, err)
	lines := strings.NewReplacer("\r\n ", "", "\n ", "").Replace(string(text)) // long lines are folded
	m := regexp.MustCompile(`(?m)^Class-Path: (.*?)\r?$`).FindStringSubmatch(lines)
	if m == nil {
		return nil
	}
	var paths []string
	for _, p := range strings.Fields(m[1]) {
		if _, err := os.Stat(p); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}
