package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

func TestMain(m *testing.M) {
	if _, ok := os.LookupEnv(workerEnv); ok {
		main() // this process is a worker that a test has started
		return
	}
	os.Exit(m.Run())
}

// story is what the program prints.
var story = regexp.MustCompile(`^worker 1 holds the lock, token (\S+)
worker 1 writes the invoice of customer 1
worker 1 writes the invoice of customer 2
worker 1 writes the invoice of customer 3
worker 1 is paused, and its session expires
worker 2 holds the lock, token (\S+)
worker 2 writes the invoice of customer 3
worker 2 writes the invoice of customer 4
worker 2 writes the invoice of customer 5
worker 2 has done the rest
worker 1 goes on
worker 1 is refused: .*token (\S+) of lock "invoices" is stale, the newer (\S+) has been seen.*
ok: each of the 5 customers has one invoice
$`)

func checkStory(t *testing.T, out string) {
	t.Helper()
	m := story.FindStringSubmatch(out)
	if m == nil || m[1] != m[3] || m[2] != m[4] || m[1] >= m[2] {
		t.Errorf("the program printed\n%s\nwant the story, in which the token of worker 1 is refused because of that of worker 2", out)
	}
}

func TestLateInvoiceIsRefused(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), []string{"-url", "mem://"}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	checkStory(t, out.String())
}

// On a real ZooKeeper the workers are processes, and SIGSTOP pauses the first one. The second one's
// session has to last while a busy disk takes its time.
func TestLateInvoiceOfAProcessIsRefused(t *testing.T) {
	t.Parallel()
	ensemble.Require(t)
	url := "zk://" + ensemble.Start(t, ensemble.Config{}).Hosts() + "/batch?session_timeout=10s&tick_time=500ms"
	var out strings.Builder
	if err := run(t.Context(), []string{"-url", url}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	checkStory(t, out.String())
}

// Without tokens in the database, the pause does harm, and the program sees it.
func TestLateInvoiceIsWrittenWithoutTokens(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), []string{"-url", "mem://", "-unfenced"}, &out)
	if err == nil || err.Error() != "customer 3 has 2 invoices, want 1" {
		t.Errorf("%v, want an error about two invoices of customer 3\n%s", err, out.String())
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{"-url", "nothing://"}, {"-unknown"}} {
		var out strings.Builder
		if err := run(t.Context(), args, &out); err == nil {
			t.Errorf("%q: no error, and the output\n%s", args, out.String())
		}
	}
}
