package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
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
	total := flag.Duration("for", 10*time.Minute, "the time for all suites that have no length of their own")
	which := flag.String("suites", ".", "run only the suites whose names match this regular expression; a page has the newest runs of the others")
	file := flag.String("md", "", "write the page to this file")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *total, *which, *file); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, total time.Duration, which, file string) error {
	match, err := regexp.Compile(which)
	if err != nil {
		return err
	}
	p := page{date: time.Now(), machine: machine()}
	bad := 0
	for _, s := range suites {
		var o outcome
		var err error
		switch {
		case match.MatchString(s.name):
			o, err = s.run(ctx, total)
		case file != "":
			o, err = s.load()
		default:
			continue
		}
		if err != nil {
			return err
		}
		if p.outcomes = append(p.outcomes, o); o.failed != "" || o.counts[violations] > 0 {
			bad++
		}
	}
	if len(p.outcomes) == 0 {
		return errors.New("no suite matches")
	}
	var text bytes.Buffer
	p.write(&text)
	if file == "" {
		fmt.Printf("\n%s", text.Bytes())
	} else if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d suites failed: what they printed is in %s", bad, len(p.outcomes), logs)
	}
	return nil
}

// run runs a suite, keeps what it prints, and prints what it has done. The error says that it
// was not run to its end.
func (s suite) run(ctx context.Context, total time.Duration) (outcome, error) {
	length := (total * time.Duration(s.share) / 100).Round(time.Second)
	words := s.command(length, total)
	env := os.Environ()
	for strings.Contains(words[0], "=") {
		env, words = append(env, words[0]), words[1:]
	}
	fmt.Printf("%s  %-24s %s\n", time.Now().Format(time.TimeOnly), s.name, strings.Join(s.command(length, total), " "))
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	// Ctrl-C reaches the command, too. It gets the time to stop its servers.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	cmd.Env = append(env, "ZKLOCK_TEST_REQUIRED=1")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return outcome{}, errors.New("interrupted")
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return outcome{}, err
	}
	o := judge(s, string(out), time.Since(began), err)
	o.at = time.Now()
	if err := os.WriteFile(s.path(".log"), out, 0o644); err != nil {
		return outcome{}, err
	}
	text, err := json.Marshal(saved{o.at, o.took, o.counts, o.failed})
	if err != nil {
		return outcome{}, err
	}
	if err := os.WriteFile(s.path(".json"), text, 0o644); err != nil {
		return outcome{}, err
	}
	fmt.Printf("%s  %-24s %s\n", time.Now().Format(time.TimeOnly), "", o)
	return o, nil
}

// saved is what is kept of an outcome in a file.
type saved struct {
	At     time.Time
	Took   time.Duration
	Counts [columns]int
	Failed string
}

// path returns the path of a file about the suite's newest run.
func (s suite) path(ext string) string {
	return filepath.Join(logs, strings.NewReplacer(" ", "-", ",", "").Replace(s.name)+ext)
}

// load returns the outcome of the suite's newest run.
func (s suite) load() (outcome, error) {
	text, err := os.ReadFile(s.path(".json"))
	if err != nil {
		return outcome{}, fmt.Errorf("%s has not been run: %w", s.name, err)
	}
	var v saved
	if err := json.Unmarshal(text, &v); err != nil {
		return outcome{}, fmt.Errorf("%s: %w", s.path(".json"), err)
	}
	o := judge(s, "", v.Took, nil) // which columns the suite has
	o.at, o.counts, o.failed = v.At, v.Counts, v.Failed
	return o, nil
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
