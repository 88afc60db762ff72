package integration_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/zklock/go-zklock/zklock"
)

// canary is the password of almost every client in these tests. The tests search all output
// for it: that of the tests, their worker processes, loggers, hooks and exporters. If it
// is found, the run fails even if every test has passed.
const (
	canary     = "Qm9vIQ-canary-7f3"
	canaryUser = "app"
)

// canaryForms are the canary and its usual encodings. An output that has an encoded canary has
// leaked the password too.
var canaryForms = [][]byte{
	[]byte(canary),
	[]byte(hex.EncodeToString([]byte(canary))),
	[]byte(strings.ToUpper(hex.EncodeToString([]byte(canary)))),
	[]byte(base64.StdEncoding.EncodeToString([]byte(canary))[:20]),
	[]byte(base64.StdEncoding.EncodeToString([]byte(canaryUser + ":" + canary))[:24]),
	[]byte(strings.Trim(fmt.Sprint([]byte(canary)), "[]")),                                             // %v of the bytes
	[]byte(strings.ReplaceAll(strings.Trim(fmt.Sprint([]byte(canary)), "[]"), " ", ",")),               // the same in JSON
	[]byte(strings.TrimPrefix(strings.TrimSuffix(fmt.Sprintf("%#v", []byte(canary)), "}"), "[]byte{")), // %#v of the bytes
	fmt.Appendf(nil, "% x", canary),
}

// everyError calls f for an error and for all errors that it wraps, with one %w or several.
func everyError(err error, f func(error)) {
	if err == nil {
		return
	}
	f(err)
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		everyError(u.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			everyError(e, f)
		}
	}
}

// withCanary adds the canary to a URL without a user. If the URL has no acl, it sets acl=open,
// so that znodes stay open to all clients, as without a user.
func withCanary(url string) string {
	if strings.Contains(url, "@") || !strings.HasPrefix(url, "zk") {
		return url
	}
	url = strings.Replace(url, "://", "://"+canaryUser+":"+canary+"@", 1)
	if strings.Contains(url, "acl=") {
		return url
	}
	if strings.Contains(url, "?") {
		return url + "&acl=open"
	}
	return url + "?acl=open"
}

// sighted are the places where the canary was seen.
var sighted struct {
	sync.Mutex
	where []string
}

// search looks for the canary in some output.
func search(where string, what []byte) {
	for _, form := range canaryForms {
		i := bytes.Index(what, form)
		if i < 0 {
			continue
		}
		before := what[max(0, i-200):i]
		sighted.Lock()
		sighted.where = append(sighted.where, fmt.Sprintf("%s: ...%s<the canary>", where, before))
		sighted.Unlock()
	}
}

// searched is a writer that looks for the canary in the bytes that are written to it, also
// across several writes, and passes them on.
type searched struct {
	where string
	to    io.Writer

	mu   sync.Mutex
	tail []byte // the last written bytes, fewer than the longest form has; guarded by mu
}

func (w *searched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := 0
	for _, form := range canaryForms {
		longest = max(longest, len(form))
	}
	all := append(w.tail, p...)
	search(w.where, all)
	w.tail = bytes.Clone(all[max(0, len(all)-longest+1):])
	if bytes.HasSuffix(p, []byte("\n")) {
		w.tail = nil // none of the forms contains the end of a line
	}
	return w.to.Write(p)
}

// searchedLog is a logger whose records are searched and dropped.
func searchedLog() *slog.Logger {
	return slog.New(slog.NewJSONHandler(&searched{where: "log", to: io.Discard}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// searchedHooks search all values that hooks get.
func searchedHooks() zklock.Hooks {
	show := func(where string, values ...any) {
		for _, v := range values {
			search("hook "+where, fmt.Appendf(nil, "%v %+v", v, v))
			if err, ok := v.(error); ok {
				everyError(err, func(err error) {
					search("hook "+where, fmt.Appendf(nil, "%v %+v %#v", err, err, err))
				})
			}
		}
	}
	return zklock.Hooks{
		Acquire: func(ctx context.Context, e zklock.AcquireEvent) (context.Context, func(zklock.AcquireResult)) {
			show("Acquire", e)
			return ctx, func(r zklock.AcquireResult) { show("Acquire", r.Err) }
		},
		Wait: func(ctx context.Context, e zklock.WaitEvent) (context.Context, func(zklock.WaitResult)) {
			show("Wait", e)
			return ctx, func(r zklock.WaitResult) { show("Wait", r.Err) }
		},
		Release: func(ctx context.Context, e zklock.ReleaseEvent) (context.Context, func(zklock.ReleaseResult)) {
			return ctx, func(r zklock.ReleaseResult) { show("Release", r.Err) }
		},
		Operation: func(ctx context.Context, e zklock.OperationEvent) (context.Context, func(error)) {
			show("Operation", e)
			return ctx, func(err error) { show("Operation", err) }
		},
		Ahead:    func(_ context.Context, e zklock.WaitEvent) { show("Ahead", e) },
		Handover: func(_ context.Context, e zklock.HandoverEvent) { show("Handover", e) },
		Lost:     func(_ context.Context, e zklock.LostEvent) { show("Lost", e.Err) },
		Session:  func(e zklock.SessionEvent) { show("Session", e, e.Err) },
	}
}

// searchStats searches a client's Stats.
func searchStats(c *zklock.Client) {
	stats := c.Stats()
	marshalled, err := json.Marshal(stats)
	search("Stats", fmt.Appendf(nil, "%v %+v %#v %s %v", stats, stats, stats, marshalled, err))
}

// searchedEnv is set in a process whose output its parent searches.
const searchedEnv = "ZKLOCK_TEST_SEARCHED"

// runSearched runs this test binary a second time, with the same arguments, and searches all
// its output until its end, including the trace of a panic. ran is false in that second
// process and in the processes that it starts.
func runSearched() (code int, ran bool) {
	if os.Getenv(searchedEnv) != "" {
		return 0, false
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), searchedEnv+"=1")
	cmd.Stdin = os.Stdin
	out := &searched{where: "output", to: os.Stdout}
	cmd.Stdout, cmd.Stderr = out, &searched{where: "output", to: os.Stderr}
	stdout, err1 := os.Stdout.Stat()
	stderr, err2 := os.Stderr.Stat()
	if err1 == nil && err2 == nil && os.SameFile(stdout, stderr) {
		cmd.Stderr = out // one pipe keeps the order
	}
	endWithParent(cmd)
	// Signals are passed on to the second process: go test asks for a trace with
	// SIGQUIT, and a user at a terminal interrupts.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // an error means that it has ended
		}
	}()
	err = cmd.Wait()
	signal.Stop(signals)
	close(signals)
	if err != nil {
		var exit *exec.ExitError
		if code = 1; errors.As(err, &exit) && exit.ExitCode() > 0 {
			code = exit.ExitCode()
		} else {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return max(code, reportSighted()), true
}

// reportSighted returns 1, and prints where, if the canary was seen. Otherwise it returns 0.
func reportSighted() int {
	sighted.Lock()
	defer sighted.Unlock()
	for i, where := range sighted.where {
		if i == 5 {
			fmt.Fprintf(os.Stderr, "... and in %d more places\n", len(sighted.where)-i)
			break
		}
		fmt.Fprintf(os.Stderr, "FAIL: the password of a client was seen in %s\n", where)
	}
	return min(len(sighted.where), 1)
}
