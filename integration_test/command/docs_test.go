//go:build linux

package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/long"
)

// documented returns the lines of the shell code in documents.
func documented(t *testing.T, paths ...string) []string {
	t.Helper()
	var found []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
			found = append(found, strings.Split(strings.TrimSpace(block[1]), "\n")...)
		}
	}
	return found
}

// TestCommandsOfTheDocsWork runs the commands of the README and of docs/command.md, with
// programs of the names that they have there.
func TestCommandsOfTheDocsWork(t *testing.T) {
	t.Parallel()
	e := servers(t)
	dir := t.TempDir()
	for name, script := range map[string]string{
		"report":      "echo report $* of $ZKLOCK_NAME",
		"upload":      "sed s/report/uploaded/",
		"move":        "echo $ZKLOCK_NAME",
		"read-prices": "echo prices",
		"download":    "echo downloaded",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"zklock run --every 24h nightly-report -- ./report --all": "report --all of nightly-report\n",
		`zklock run --once "$(date -u +%F)" invoices -- ./report`: "report of invoices\n",
		"zklock run reports -- ./report --all":                    "report --all of reports\n",
		"zklock run --try -q -E 0 reports -- ./report":            "report of reports\n",
		"zklock run --wait 30s orders/42 customers/7 -- ./move":   "orders/42 customers/7\n",
		"zklock run --shared prices -- ./read-prices":             "prices\n",
		"zklock run --permits 3 downloads -- ./download":          "downloaded\n",
		"zklock run --shell reports -- './report | ./upload'":     "uploaded of reports\n",
	}
	shown := map[string]string{ // with a lock that is held
		"zklock ls":                    "orders/42  exclusive",
		"zklock ls --sort wait":        "orders/42  exclusive",
		"zklock ls -o wide orders/":    "orders/42  exclusive",
		"zklock who orders/42":         "holds  exclusive",
		"zklock who --tree orders/42":  "holds exclusive",
		"zklock who -o json orders/42": `"held":true`,
		"zklock doctor":                "\nok\n",
	}
	url := "zk://" + e.Hosts() + "/documented?tick_time=500ms&session_timeout=30s"
	holder := start(t, url, nil, "run", "orders/42", "--", "sh", "-c", "echo ready; sleep 1000")
	eventually(t, "a lock is held", func() bool { return holder.stdout.String() == "ready\n" })
	ran := 0
	for _, line := range documented(t, "../../README.md", "../../docs/command.md") {
		if !strings.HasPrefix(line, "zklock ") || strings.HasPrefix(line, "zklock watch ") || strings.HasPrefix(line, "zklock elect ") || strings.HasPrefix(line, "zklock history ") || line == "zklock top" || line == "zklock page" {
			continue // these do not end, or need the files of servers; other tests run them
		}
		ran++
		p := prepared("sh", "-c", line)
		p.cmd.Dir = dir
		p.cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary(t))+":"+os.Getenv("PATH"), "ZKLOCK_URL="+urlOf(e.Hosts()))
		if part := shown[line]; part != "" {
			p.cmd.Env = append(p.cmd.Env, "ZKLOCK_URL="+url)
			p.begin(t)
			if code := p.code(t); code != 0 || !strings.Contains(p.stdout.String(), part) {
				t.Errorf("%s: %d, %q, %q", line, code, p.stdout.String(), p.stderr.String())
			}
			continue
		}
		p.begin(t)
		if code, out := p.code(t), p.stdout.String(); code != 0 || out != want[line] {
			t.Errorf("%s: %d, %q, %q, want %q", line, code, out, p.stderr.String(), want[line])
		}
	}
	if ran < len(want)+len(shown) {
		t.Errorf("%d commands were run, want %d or more", ran, len(want)+len(shown))
	}
}

// TestInstalledFromAClone runs what docs/command.md says of the installation, in a clone of what
// was committed last, and with an empty folder for the programs.
func TestInstalledFromAClone(t *testing.T) {
	long.Test(t, "a clone is built")
	clone, bin := filepath.Join(t.TempDir(), "clone"), t.TempDir()
	if out, err := exec.Command("git", "clone", "-q", "../..", clone).CombinedOutput(); err != nil {
		t.Skipf("this is not a clone itself: git clone: %v\n%s", err, out)
	}
	ran := 0
	for _, line := range documented(t, "../../docs/command.md") {
		if !strings.HasPrefix(line, "go install ") && !strings.HasPrefix(line, "make ") {
			continue
		}
		ran++
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = clone
		cmd.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	if ran != 2 {
		t.Errorf("%d commands were run, want 2", ran)
	}
	out, err := exec.Command(filepath.Join(bin, "zklock"), "completion", "bash").Output()
	if err != nil || !strings.Contains(string(out), "__start_zklock") {
		t.Errorf("completion: %v, %d bytes", err, len(out))
	}
	page, err := os.ReadFile(filepath.Join(clone, "bin/man/zklock-run.1"))
	if err != nil || !strings.Contains(string(page), "lock was lost") {
		t.Errorf("the manual: %v\n%s", err, page)
	}
	out, err = exec.Command("git", "-C", clone, "status", "--porcelain").Output()
	if err != nil || len(out) > 0 {
		t.Errorf("the clone has changed: %v\n%s", err, out)
	}
}
