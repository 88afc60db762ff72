package integration_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
	"github.com/zklock/go-zklock/internal/testkit/wait"
)

// tutorials are the pages that TestTutorial runs, with a lock of the request that the reader sends.
var tutorials = map[string]string{"../docs/tutorial.md": "seats/12A", "../docs/transfer.md": "accounts/7"}

// A block of the tutorial has a comment in front of it that says what the reader does with it: a file to
// write, a diff to apply, a command that fails, the service to start, or a request to send to it. Commands
// without a comment succeed. A block of text is what the last command prints; three dots stand for anything.
var tutorialBlocks = regexp.MustCompile("(?m)(?:^<!-- (file|change|fails|serves|buys)(?:: ([a-z_.]+))? -->\n)?^```([a-z]*)\n((?:.*\n)*?)^```$")

// TestTutorial does what a reader of each page does, in an empty folder and in the same order. It
// differs in this only: the service gets free ports, and the modules of others the versions that this
// repository requires.
func TestTutorial(t *testing.T) {
	t.Parallel()
	for path, lock := range tutorials {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			follow(t, path, lock)
		})
	}
}

// follow does what a reader of a page does.
func follow(t *testing.T, path, lock string) {
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(ensemble.FreePort(t)))
	later := regexp.MustCompile(`(?s)<!-- from then on:.*?\n-->`) // what is true after the first release
	text := strings.NewReplacer("/path/to/clone", root(t), "127.0.0.1:8080", address,
		"127.0.0.1:2181/shop/locks", sharedEnsemble(t).Hosts()+rootOf(t)+"?tick_time=1s").Replace(later.ReplaceAllString(string(page), ""))
	r := reader{t: t, dir: t.TempDir()}
	var written, changed, ran, bought int
	for _, m := range tutorialBlocks.FindAllStringSubmatch(text, -1) {
		do, file, language, block := m[1], m[2], m[3], m[4]
		switch {
		case do == "file" && language == "go":
			r.write(file, block)
			written++
		case do == "change" && language == "diff":
			r.change(file, block)
			changed++
		case do == "serves" && language == "sh":
			r.serve(block)
		case do == "buys" && language == "sh":
			r.buy(block, address, lock)
			bought++
		case language == "sh":
			r.run(block, do == "fails")
			ran++
		case do == "" && language == "text":
			r.expect(block)
		default:
			t.Fatalf("a reader does not know what to do with this block:\n%s", m[0])
		}
	}
	if written < 6 || changed < 3 || ran < 6 || bought != 1 {
		t.Errorf("%d files were written and %d changed, %d blocks of commands run, %d requests sent", written, changed, ran, bought)
	}
}

// reader follows the tutorial.
type reader struct {
	t       *testing.T
	dir     string
	printed string // by the last commands
	service *exec.Cmd
	out     *bytes.Buffer // what the service prints
}

func (r *reader) write(file, text string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, file), []byte(text), 0o666); err != nil {
		r.t.Fatal(err)
	}
}

// change applies a diff, whose place must be unique.
func (r *reader) change(file, diff string) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		r.t.Fatal(err)
	}
	before := side(diff, '-')
	if n := strings.Count(string(text), before); n != 1 {
		r.t.Fatalf("%s has %d times what is to be changed:\n%s", file, n, before)
	}
	r.write(file, strings.Replace(string(text), before, side(diff, '+'), 1))
}

// run runs commands, and goes to where they end.
func (r *reader) run(commands string, fails bool) {
	r.t.Helper()
	if strings.Contains(commands, "go mod tidy") {
		r.pin()
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(r.t.Context(), 10*time.Minute)
	defer cancel()
	where := filepath.Join(r.t.TempDir(), "where")
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", commands+"pwd >'"+where+"'\n")
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	r.printed = string(out)
	r.t.Logf("%.1f s: %s%s", time.Since(began).Seconds(), commands, out)
	if fails != (err != nil) {
		r.t.Fatalf("the commands ended with %v, and are to fail: %v", err, fails)
	}
	if to, err := os.ReadFile(where); err == nil {
		r.dir = strings.TrimSpace(string(to))
	}
}

// pin requires the modules of others in the versions of this repository, and the project from this clone,
// as before the first release. A reader gets the newest ones.
func (r *reader) pin() {
	r.t.Helper()
	var sums []byte
	edit := []string{"mod", "edit", "-replace=" + module + "=" + root(r.t), "-replace=" + module + "/tracing=" + root(r.t) + "/tracing"}
	for dir, required := range map[string]string{"examples/batch": "modernc.org/sqlite", "integration_test": "go.opentelemetry.io/otel/sdk"} {
		text, err := os.ReadFile(filepath.Join("..", dir, "go.mod"))
		if err != nil {
			r.t.Fatal(err)
		}
		version := regexp.MustCompile(`\s` + regexp.QuoteMeta(required) + ` (v\S+)`).FindSubmatch(text)
		if version == nil {
			r.t.Fatalf("%s does not require %s", dir, required)
		}
		edit = append(edit, "-require="+required+"@"+string(version[1]))
		more, err := os.ReadFile(filepath.Join("..", dir, "go.sum"))
		if err != nil {
			r.t.Fatal(err)
		}
		sums = append(sums, more...)
	}
	if out, err := runIn(r.t, r.dir, "go", edit...); err != nil {
		r.t.Fatalf("go mod edit: %v\n%s", err, out)
	}
	r.write("go.sum", string(sums))
}

// expect looks for lines in what was printed last.
func (r *reader) expect(lines string) {
	r.t.Helper()
	for line := range strings.Lines(lines) {
		parts := strings.Split(strings.TrimSpace(line), "...")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		if !regexp.MustCompile(`(?m)^\s*` + strings.Join(parts, ".*") + `\s*$`).MatchString(r.printed) {
			r.t.Errorf("no line %q in\n%s", line, r.printed)
		}
	}
}

// serve builds the service and starts it.
func (r *reader) serve(commands string) {
	r.t.Helper()
	build, start, ok := strings.Cut(strings.TrimSpace(commands), " && ")
	if !ok {
		r.t.Fatalf("%q is not a command that builds && one that starts", commands)
	}
	r.run(build+"\n", false)
	r.out = new(bytes.Buffer)
	r.service = exec.Command(filepath.Join(r.dir, start))
	r.service.Dir, r.service.Stdout, r.service.Stderr = r.dir, r.out, r.out
	if err := r.service.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = r.service.Process.Kill()
		_ = r.service.Wait() // an error if it has ended before
	})
}

// buy sends the request of a curl command. As soon as the service has it, it gets the signal of Ctrl-C. The
// request must get its answer, the service must end without an error, and the lock must be free.
func (r *reader) buy(curl, address, name string) {
	r.t.Helper()
	url := regexp.MustCompile(`'(http://.*)'`).FindStringSubmatch(curl)
	if url == nil || !strings.HasPrefix(curl, "curl -X POST ") {
		r.t.Fatalf("%q is not a POST", curl)
	}
	wait.Until(r.t, "the service to listen", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	answered := make(chan string, 1)
	go func() {
		answer, err := http.Post(url[1], "", nil)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		answered <- string(text)
	}()
	client := dial(r.t, sharedEnsemble(r.t).Hosts(), quick())
	wait.Until(r.t, "the request to get its lock", func() bool {
		holders, err := client.Contenders(r.t.Context(), name)
		return err == nil && len(holders) > 0 || len(answered) > 0
	})
	if err := r.service.Process.Signal(syscall.SIGINT); err != nil {
		r.t.Fatal(err)
	}
	r.printed = <-answered
	if err := r.service.Wait(); err != nil {
		r.t.Errorf("the service ended with %v:\n%s", err, r.out)
	}
	lock, err := client.Mutex(name).TryAcquire(within(r.t))
	if err != nil {
		r.t.Fatalf("the lock is not free after the service has ended: %v", err)
	}
	release(r.t, lock)
}

// root is the folder of the clone.
func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	return path
}
