package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/faultdriver"
	"github.com/zklock/go-zklock/zklock/memdriver"
	"github.com/zklock/go-zklock/zklock/zklocktest"
)

// open returns a client of an ensemble that the test controls, or of a wrapper around one.
// Cleanups run in reverse order, so clients are closed before their ensemble.
func open(t *testing.T, c driver.Connector) *zklock.Client {
	t.Helper()
	client, err := zklock.OpenConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	zklocktest.Order(t, client) // replicas that acquire locks in opposite orders would fail the test
	return client
}

// ensemble returns an ensemble in memory.
func ensemble(t *testing.T) *memdriver.Ensemble {
	e := memdriver.New()
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// The lock is lost during the first step. The job does not begin the second step, and
// returns the reason.
func TestJobStopsWhenItsLockIsLost(t *testing.T) {
	e := ensemble(t)
	var begun []string
	j := &job{client: open(t, e.Connector()), steps: []string{"bills", "mails"}}
	j.do = func(ctx context.Context, step string, _ zklock.Token) error {
		begun = append(begun, step)
		e.ExpireAll()
		<-ctx.Done() // the step's context ends, but this step succeeds nevertheless
		return nil
	}
	if err := j.run(t.Context()); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("run = %v, want a lost lock", err)
	}
	if !slices.Equal(begun, []string{"bills"}) {
		t.Errorf("the job began %q, want the first step only", begun)
	}
}

// Another replica holds the lock, and this one does not wait for it.
func TestJobIsDoneByOneReplica(t *testing.T) {
	e := ensemble(t)
	lock, err := open(t, e.Connector()).Mutex("jobs/nightly").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j := &job{client: open(t, e.Connector()), steps: []string{"bills"}}
	if err := j.run(t.Context()); !errors.Is(err, errElsewhere) {
		t.Errorf("run = %v, want errElsewhere", err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The ensemble carries out the request that takes the lock, and the reply is lost. The job
// succeeds nevertheless, and the lock is free afterwards. In a synctest bubble the client's
// waits pass at once.
func TestJobSurvivesALostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := ensemble(t)
		faults := faultdriver.NewLog(faultdriver.Once(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply())))
		done := 0
		j := &job{client: open(t, faultdriver.Wrap(e.Connector(), faults)), steps: []string{"bills"}}
		j.do = func(context.Context, string, zklock.Token) error { done++; return nil }
		if err := j.run(t.Context()); err != nil || done != 1 {
			t.Errorf("run = %v, and the step was done %d times, want once, with the faults\n%s", err, done, faults.Text())
		}
		if len(faults.Strikes()) != 1 {
			t.Errorf("the fault did not strike exactly once:\n%s", faults.Text())
		}
		lock, err := open(t, e.Connector()).Mutex("jobs/nightly").TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = lock.Release(t.Context())
	})
}

// The only server does not answer, and the client gives up after connect_timeout.
func TestJobFailsWithoutAnEnsemble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := ensemble(t)
		e.Partition(memdriver.AroundClients(0))
		if err := (&job{client: open(t, e.Connector())}).run(t.Context()); !errors.Is(err, zklock.ErrUnavailable) {
			t.Errorf("run = %v, want ErrUnavailable", err)
		}
	})
}

func TestRunOnMem(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"-url", "mem://" + t.Name()}, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != "one replica did the job\n" {
		t.Errorf("the output is %q", &out)
	}
}
