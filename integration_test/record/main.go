package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// logs is the folder of what the suites have printed.
const logs = "bin/record"

func main() {
	length := flag.Duration("for", 10*time.Minute, "how long to go round the suites; 0: only write the page")
	each := flag.Duration("each", 5*time.Minute, "the length of a run of a suite that has no length of its own, at most -for")
	waiting := flag.Int("waiting", 1, "how many runs of suites that mostly wait to make at the same time as another one")
	which := flag.String("suites", ".", "run only the suites whose names match this regular expression")
	file := flag.String("ledger", "docs/track-record.ndjson", "the ledger to add the runs to")
	document := flag.String("md", "", "write the page to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *length, *each, *waiting, *which, *file, *document)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, length, each time.Duration, waiting int, which, file, document string) error {
	match, err := regexp.Compile(which)
	if err != nil {
		return err
	}
	commit, err := commit(ctx)
	if err != nil {
		return err
	}
	r := &rounds{ledger: &ledger{path: file}, each: min(each, length), until: time.Now().Add(length), commit: commit, run: execute}
	for _, s := range suites {
		if match.MatchString(s.name) {
			r.suites = append(r.suites, s)
		}
	}
	if len(r.suites) == 0 {
		return errors.New("no suite matches")
	}
	r.wrote = func() error {
		r.ledger.mu.Lock()
		defer r.ledger.mu.Unlock()
		return writePage(file, document)
	}
	if err := r.wrote(); err != nil {
		return err
	}
	if err := r.serve(ctx, waiting); err != nil && ctx.Err() == nil {
		return err
	}
	return r.failures()
}

// writePage writes the page from the ledger; without a document it does nothing.
func writePage(file, document string) error {
	if document == "" {
		return nil
	}
	entries, err := readLedger(file)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	writeTo(&text, entries)
	return replace(document, text.Bytes())
}

// commit returns the commit of the files, with a + if they were changed. What suites write into docs does not count.
func commit(ctx context.Context) (string, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", args...).Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w", args[0], err)
		}
		return strings.TrimSpace(string(out)), nil
	}
	name, err := git("rev-parse", "--short=8", "HEAD")
	if err != nil {
		return "", err
	}
	changed, err := git("status", "--porcelain", "--", ":/", ":!/docs/track-record.*", ":!/docs/comparison.*")
	if changed != "" {
		name += "+"
	}
	return name, err
}

// execute runs a suite, keeps what it prints, and prints what it has done. The error says that it was not
// run to its end.
func execute(ctx context.Context, s suite, length time.Duration, seed int64) (outcome, error) {
	words := s.command(length, seed)
	env := os.Environ()
	for strings.Contains(words[0], "=") {
		env, words = append(env, words[0]), words[1:]
	}
	say := func(what string) { fmt.Printf("%s  %-24s %s\n", time.Now().Format(time.TimeOnly), s.name, what) }
	say(strings.Join(s.command(length, seed), " "))
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	// The command has a group of processes. All of them are interrupted, since go test and go run do not pass
	// that on, and get the time to stop their servers.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	cmd.Env = append(env, "ZKLOCK_TEST_REQUIRED=1", "ZKLOCK_LONG=1")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return outcome{}, err
	}
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return outcome{}, context.Cause(ctx)
	}
	o := judge(s, string(out), time.Since(began), err)
	o.at = time.Now()
	name := filepath.Join(logs, s.file(".log"))
	if o.failed != "" || o.counts[violations] > 0 {
		name = s.log(seed, ".log") // no later run replaces it
	} else if err := os.Remove(s.log(seed, ".ndjson")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return outcome{}, err
	}
	if err := os.WriteFile(name, out, 0o644); err != nil {
		return outcome{}, err
	}
	say(o.String())
	return o, nil
}

// log is the path of a file about one run of the suite: what it has printed, or the history of a run that the judge of
// contrib/locktest has judged. Both are kept if the run failed.
func (s suite) log(seed int64, end string) string {
	return filepath.Join(logs, s.file(fmt.Sprintf("-%d%s", seed, end)))
}

// file is the name of a file about the suite.
func (s suite) file(end string) string {
	return strings.NewReplacer(" ", "-", ",", "", ":", "").Replace(s.name) + end
}

// String returns the figures on one line.
func (o outcome) String() string {
	var parts []string
	for c := range columns {
		if o.has[c] {
			parts = append(parts, grouped(o.counts[c])+" "+o.suite.title(c))
		}
	}
	if o.failed != "" {
		parts = append(parts, o.failed)
	}
	return strings.Join(parts, ", ")
}
