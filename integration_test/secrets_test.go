package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
)

// look searches values for the canary, in every format they can be printed in. It returns the
// number of bytes that it searched.
func look(where string, values ...any) (n int) {
	for _, v := range values {
		marshalled, err := json.Marshal(v)
		out := fmt.Appendf(marshalled, " %v %v %+v %#v %s %q", err, v, v, v, v, v)
		search(where, out)
		n += len(out)
	}
	return n
}

// TestSecretsAreInNothingThatComesOut causes every kind of error that involves a password. It
// searches the clients' errors, spans and metrics, and the clients themselves when they are
// printed. Logs and the values that hooks get are searched in all tests.
func TestSecretsAreInNothingThatComesOut(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	w := newWiretap(t, e.Hosts())
	c := dialTraced(t, w.Addr())
	l := acquire(t, c.Mutex("x"))
	look("a lock", l, *l, l.Token(), l.Err(), c.Mutex("x"), c.RWMutex("x"), zklock.All(c.Mutex("a"), c.Mutex("b")))

	var trouble []error
	note := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: no error, want one to search", what)
		}
		trouble = append(trouble, err)
	}
	ctx, cancel := context.WithCancel(within(t))
	cancel()
	_, err := c.Mutex("x").Acquire(ctx)
	note("a wait that was cancelled", err)
	_, err = c.Mutex("x").TryAcquire(within(t))
	note("a lock that is taken", err)
	_, err = l.Txn(within(t), driver.CreateOp(rootOf(t), nil, driver.Persistent, driver.OpenACL(driver.PermAll)))
	note("a transaction that fails", err)
	w.spoil.Store(true)
	w.KillConns()
	receive(t, "the loss", l.Done())
	note("a lost lock", l.Err())
	note("its release", l.Release(within(t)))
	_, err = c.Mutex("x").Acquire(within(t))
	if !errors.Is(err, driver.ErrAuthFailed) {
		t.Errorf("Acquire with refused credentials: %v, want ErrAuthFailed", err)
	}
	note("credentials that are refused", err)
	note("Ping with them", c.Ping(within(t)))
	w.spoil.Store(false)

	owner := dial(t, e.Hosts(), owning())
	if err := owner.Ping(within(t)); err == nil { // the root exists already and is open to all clients
		release(t, acquire(t, owner.Mutex("owned")))
	}
	wrong, err := zklock.Open("zk://other:"+canary+"-wrong@"+e.Hosts()+rootOf(t)+"?"+owning().Encode(), zklock.WithLogger(searchedLog()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = wrong.Mutex("owned").Acquire(within(t))
	if !errors.Is(err, zklock.ErrNoAuth) {
		t.Errorf("Acquire of a lock that belongs to another user: %v, want ErrNoAuth", err)
	}
	note("a lock that belongs to another user", err)

	spans := tracetest.SpanStubsFromReadOnlySpans(c.spans.Ended())
	failed := 0
	for _, s := range spans {
		look("a span", s)
		if s.Status.Code == codes.Error {
			failed++
		}
	}
	var metrics metricdata.ResourceMetrics
	if err := c.reader.Collect(within(t), &metrics); err != nil {
		t.Fatal(err)
	}
	if n := look("metrics", metrics); n < 1000 || len(spans) < 5 || failed < 2 {
		t.Errorf("searched only %d bytes of metrics and %d spans, %d of them with errors", n, len(spans), failed)
	}
	for _, err := range trouble {
		everyError(err, func(err error) { look("an error", err) })
	}
	for _, client := range []*zklock.Client{c.Client, wrong} {
		_ = client.Close() // its goroutines have ended now, so that it can be printed as a whole
		look("a client", client, client.Stats(), struct{ c any }{client})
	}
}

// TestCanaryIsFoundInEveryForm: otherwise the search for the canary would prove nothing.
func TestCanaryIsFoundInEveryForm(t *testing.T) {
	found := func(show func()) (n int) {
		sighted.Lock()
		before := sighted.where
		sighted.where = nil
		sighted.Unlock()
		show()
		sighted.Lock()
		defer sighted.Unlock()
		n, sighted.where = len(sighted.where), before
		return n
	}
	bytes := []byte(canary)
	inside := fmt.Errorf("%w: %w", errors.New("outer"), fmt.Errorf("%w, %w", errors.New("other"), silentError{errors.New(canary)}))
	for what, show := range map[string]func(){
		"text":          func() { search("", []byte("x"+canary+"x")) },
		"%v of bytes":   func() { search("", fmt.Appendf(nil, "%v", bytes)) },
		"%#v of bytes":  func() { search("", fmt.Appendf(nil, "%#v", struct{ b []byte }{bytes})) },
		"%d of bytes":   func() { search("", fmt.Appendf(nil, "%d", bytes)) },
		"%x":            func() { search("", fmt.Appendf(nil, "%x", canary)) },
		"%X":            func() { search("", fmt.Appendf(nil, "%X", canary)) },
		"% x":           func() { search("", fmt.Appendf(nil, "% x", canary)) },
		"JSON of bytes": func() { look("", bytes) },
		"JSON of numbers": func() {
			numbers := make([]int, len(bytes))
			for i, b := range bytes {
				numbers[i] = int(b)
			}
			out, _ := json.Marshal(numbers)
			search("", out)
		},
		"an error under several": func() { everyError(inside, func(err error) { search("", []byte(err.Error())) }) },
	} {
		if found(show) == 0 {
			t.Errorf("%s: the canary was not found", what)
		}
	}
}

// silentError does not print the error that it wraps.
type silentError struct{ error }

func (silentError) Error() string   { return "something" }
func (e silentError) Unwrap() error { return e.error }

// TestSecretsAreInNoPanic: a process ends with a panic that prints all its values, and with a
// trace of all its goroutines. startWorker searches this output.
func TestSecretsAreInNoPanic(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	p := startWorker(t, task{Role: "panic", URL: e.URL(rootOf(t), quick("acl", "creator")), Name: "x"})
	p.await("ready")
	p.start()
	for r, ok := p.next(); ok; r, ok = p.next() {
		if r.What == "done" {
			t.Error("the worker ended without a panic")
		}
	}
	if words := p.stderr.String(); !strings.Contains(words, "last words") || strings.Count(words, "goroutine ") < 5 {
		t.Errorf("the worker's output was %q, want the panic and a trace of all goroutines", words)
	}
}

// panic ends the process with a panic while it holds a lock.
func (w *worker) panic(ctx context.Context, c *zklock.Client) error {
	l, err := c.Mutex(w.task.Name).Acquire(ctx)
	if err != nil {
		return err
	}
	debug.SetTraceback("all")
	type all struct {
		client *zklock.Client
		lock   zklock.Lock
		err    error
	}
	// A panic of this goroutine would run the deferred close of the client first.
	go panic(fmt.Sprintf("last words: %+v %#v", all{c, *l, err}, l))
	<-ctx.Done()
	return ctx.Err()
}
