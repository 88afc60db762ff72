package maven

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fake is a tool whose command is a function. It gets the pom and the folder for the jars, and
// returns the names of the jars, or what the command prints when it fails.
func fake(t *testing.T, answer func(pom string) (jars []string, failed string)) *Tool {
	t.Helper()
	return &Tool{"mvn", func(cmd *exec.Cmd) ([]byte, error) {
		var folder string
		for _, arg := range cmd.Args {
			if dir, ok := strings.CutPrefix(arg, "-DoutputDirectory="); ok {
				folder = dir
			}
		}
		pom, err := os.ReadFile(cmd.Args[slices.Index(cmd.Args, "--file")+1])
		if err != nil {
			t.Fatal(err)
		}
		jars, failed := answer(string(pom))
		if failed != "" {
			return []byte(failed), errors.New("exit status 1")
		}
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, jar := range jars {
			if err := os.WriteFile(filepath.Join(folder, jar), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return nil, nil
	}}
}

func TestCopyLeavesAllOrNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	p := Project{
		Artifacts: []Artifact{{Group: "g", Name: "server", Version: "3.9.6"}, {Group: "g", Name: "metrics"}},
		Versions:  &Artifact{Group: "g", Name: "parent", Version: "3.9.6"},
	}
	var pom string
	works := fake(t, func(text string) ([]string, string) {
		pom = text
		return []string{"server-3.9.6.jar", "metrics-4.1.jar"}, ""
	})
	fails := fake(t, func(string) ([]string, string) {
		return nil, "[ERROR] Could not transfer g:server from https://user:secret@example.com/x (Forbidden)\n"
	})
	err := fails.Copy(t.Context(), p, filepath.Join(dir, "server"))
	if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "example.com") || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("error %v, want one without the address", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("a failure left %v", left)
	}
	for range 2 { // the second time, the folder exists
		if err := works.Copy(t.Context(), p, filepath.Join(dir, "server")); err != nil {
			t.Fatal(err)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "server" {
		t.Errorf("the cache has %v, %v", left, err)
	}
	for _, want := range []string{
		`<artifactId>server</artifactId>\s*<version>3\.9\.6</version>`,
		`<artifactId>metrics</artifactId>\s*</dependency>`,
		`<artifactId>parent</artifactId>\s*<version>3\.9\.6</version>\s*<type>pom</type>\s*<scope>import</scope>`,
	} {
		if !regexp.MustCompile(want).MatchString(pom) {
			t.Errorf("the pom does not match %s:\n%s", want, pom)
		}
	}
}

// TestNewestThatCanBeFetched: a mirror may list a version without having all of its files. Newest
// then returns the newest version that has them.
func TestNewestThatCanBeFetched(t *testing.T) {
	var ranges []string
	tool := fake(t, func(pom string) ([]string, string) {
		r := regexp.MustCompile(`<version>(\[.*)</version>`).FindStringSubmatch(pom)[1]
		ranges = append(ranges, r)
		if r == "[3.9.0,3.9.999]" {
			return nil, "[ERROR] Failed to read artifact descriptor for g:server:jar:3.9.6: Could not find artifact g:parent:pom:3.9.6\n"
		}
		return []string{"server-3.9.5.jar"}, ""
	})
	got, missing, err := tool.Newest(t.Context(), "g", "server", "3.9.0", "3.9.999")
	if err != nil || got != "3.9.5" || !slices.Equal(missing, []string{"3.9.6"}) {
		t.Errorf("newest: %q without %q, %v, want 3.9.5 without 3.9.6", got, missing, err)
	}
	if want := []string{"[3.9.0,3.9.999]", "[3.9.0,3.9.6)"}; !slices.Equal(ranges, want) {
		t.Errorf("the ranges were %q, want %q", ranges, want)
	}
}

func TestNewestThatIsNotReleased(t *testing.T) {
	calls := 0
	tool := fake(t, func(string) ([]string, string) {
		calls++
		return nil, "[ERROR] No versions available for g:server:jar:[3.10.0,3.10.999] within specified range -> [Help 1]\n"
	})
	if v, _, err := tool.Newest(t.Context(), "g", "server", "3.10.0", "3.10.999"); !errors.Is(err, ErrNoVersion) || calls != 1 {
		t.Errorf("newest: %q, %v after %d calls, want ErrNoVersion after 1", v, err, calls)
	}
}

// TestNewestEnds: an outage is not an older version.
func TestNewestEnds(t *testing.T) {
	for name, text := range map[string]string{
		"outage":        "[ERROR] Unknown host\n",
		"every version": "[ERROR] Could not find artifact g:server:jar:3.9.6\n",
	} {
		calls := 0
		tool := fake(t, func(string) ([]string, string) {
			calls++
			return nil, text
		})
		if v, _, err := tool.Newest(t.Context(), "g", "server", "3.9.0", "3.9.999"); err == nil || calls > attempts {
			t.Errorf("%s: newest: %q, %v after %d calls", name, v, err, calls)
		}
	}
}
