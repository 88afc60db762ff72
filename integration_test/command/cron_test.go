//go:build linux

package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/zklock"
)

// host is where the lines of docs/command.md run as cron and systemd run them: with the variables that they set, and
// no others but those of the shell. Three things differ from the document: the servers, /usr/local/bin and /run.
type host struct {
	bin, run string
	replace  *strings.Replacer
}

// newHost makes the programs that the document names.
func newHost(t *testing.T, hosts string) *host {
	t.Helper()
	h := &host{bin: t.TempDir(), run: t.TempDir()}
	h.replace = strings.NewReplacer("zk1:2181,zk2:2181,zk3:2181", hosts, "/usr/local/bin", h.bin, "/run/", h.run+"/")
	for name, script := range map[string]string{
		"report":     `echo "report $* of $ZKLOCK_SLOT, HOME=$HOME"`,
		"invoices":   `echo "invoices of $ZKLOCK_SLOT"`,
		"sync-stock": "echo in step",
		"logger":     `sed "s/^/log $*: /"`,
	} {
		if err := os.WriteFile(filepath.Join(h.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(binary(t), filepath.Join(h.bin, "zklock")); err != nil {
		t.Fatal(err)
	}
	return h
}

// shell runs a line, and returns its exit code and all that it prints.
func (h *host) shell(t *testing.T, env []string, line string) (code int, printed string) {
	t.Helper()
	p := prepared("env", append(append([]string{"-i", "TMPDIR=" + h.run}, env...), "/bin/sh", "-c", line)...)
	p.begin(t)
	code = p.code(t)
	return code, p.stdout.String() + p.stderr.String()
}

// block returns the lines of the only block of docs/command.md in a language.
func block(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(found) != 1 {
		t.Fatalf("docs/command.md has %d blocks of %s, want one", len(found), language)
	}
	return strings.Split(strings.TrimSpace(found[0][1]), "\n")
}

// withoutRoot checks that a line fails on servers without the root, and makes the root.
func withoutRoot(t *testing.T, run func() (code int, printed string), url string) {
	t.Helper()
	if code, printed := run(); code != 78 || !strings.Contains(printed, "/shop/locks") {
		t.Errorf("without the root: %d, %q", code, printed)
	}
	c, err := zklock.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestCrontabOfTheDocs runs each line of the crontab on two hosts, one after the other: that is what clocks that
// differ make of a short job. Jobs with a slot run on the first one only, and the other prints nothing.
func TestCrontabOfTheDocs(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Shipped(1))
	h := newHost(t, e.Hosts())
	var env []string
	job := regexp.MustCompile(`^(?:\S+ +){5}(.*)$`)
	rootless := true
	want := [][2]string{
		{`^report --all of 2\S+T2[23]:00:00Z, HOME=\n$`, `^$`},
		{`^log -t invoices: invoices of 2\d\d\d-W\d\d\n$`, `^$`},
		{`^in step\n$`, `^in step\n$`},
	}
	ran := 0
	for _, line := range block(t, "crontab") {
		line = h.replace.Replace(line)
		found := job.FindStringSubmatch(line)
		if found == nil {
			env = append(env, line)
			continue
		}
		command := strings.ReplaceAll(regexp.MustCompile(`(^|[^\\])%`).ReplaceAllString(found[1], "$1\n"), `\%`, "%") // as cron does it
		if rootless {
			withoutRoot(t, func() (int, string) { return h.shell(t, env, command) }, "zk://"+e.Hosts()+"/shop/locks?tick_time=500ms")
			rootless = false
		}
		for n, expect := range want[ran] {
			if code, printed := h.shell(t, env, command); code != 0 || !regexp.MustCompile(expect).MatchString(printed) {
				t.Errorf("%s\non host %d: %d, %q, want %s", command, n+1, code, printed, expect)
			}
		}
		ran++
	}
	if ran != len(want) {
		t.Errorf("%d lines were run, want %d", ran, len(want))
	}
}

// TestUnitOfTheDocs runs the commands of the unit on two hosts. systemd checks the unit if this machine has it.
func TestUnitOfTheDocs(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	e := ensemble.Start(t, ensemble.Shipped(1))
	h := newHost(t, e.Hosts())
	if err := os.Mkdir(filepath.Join(h.run, "report"), 0o755); err != nil {
		t.Fatal(err)
	}
	set := make(map[string]string)
	var text []string
	for _, line := range block(t, "ini") {
		line = h.replace.Replace(line)
		text = append(text, line)
		if key, value, ok := strings.Cut(line, "="); ok {
			set[key] = strings.ReplaceAll(strings.Trim(value, `"`), "%%", "%")
		}
	}
	env := []string{set["Environment"]}
	withoutRoot(t, func() (int, string) { return h.shell(t, env, set["ExecStart"]) }, "zk://"+e.Hosts()+"/shop/locks?tick_time=500ms")
	if code, printed := h.shell(t, env, set["ExecStart"]); code != 0 || !strings.HasPrefix(printed, "report --all of 2") {
		t.Errorf("the first host: %d, %q", code, printed)
	}
	if code, printed := h.shell(t, env, set["ExecStart"]); code != 79 || set["SuccessExitStatus"] != "79" || printed != "" {
		t.Errorf("the second host: %d, %q", code, printed)
	}
	if code, printed := h.shell(t, env, set["ExecStopPost"]); code != 0 || printed != "" {
		t.Errorf("ExecStopPost: %d, %q", code, printed)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("the unit was not checked: this machine has no systemd-analyze")
		return
	}
	unit := filepath.Join(t.TempDir(), "nightly-report.service")
	if err := os.WriteFile(unit, []byte(strings.Join(text, "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", unit).CombinedOutput(); err != nil || strings.Contains(string(out), unit) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
