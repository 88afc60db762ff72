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
)

// open is a client of an ensemble that the test controls, or of what wraps it.
// Clients are closed before their ensemble.
func open(t *testing.T, c driver.Connector) *zklock.Client {
	t.Helper()
	client, err := zklock.OpenConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// ensemble is one in memory.
func ensemble(t *testing.T) *memdriver.Ensemble {
	e := memdriver.New()
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// The lock is lost while the first step is at work: the second is not begun, and
// the caller learns why.
func TestJobStopsWhenItsLockIsLost(t *testing.T) {
	e := ensemble(t)
	var begun []string
	j := &job{client: open(t, e.Connector()), steps: []string{"bills", "mails"}}
	j.do = func(ctx context.Context, step string, _ zklock.Token) error {
		begun = append(begun, step)
		e.ExpireAll()
		<-ctx.Done() // the step is told; this one ends as if it had not listened
		return nil
	}
	if err := j.run(t.Context()); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("run = %v, want a lost lock", err)
	}
	if !slices.Equal(begun, []string{"bills"}) {
		t.Errorf("begun were %q, want the first step only", begun)
	}
}

// Another replica is at work: this one does not wait.
func TestJobIsDoneByOneReplica(t *testing.T) {
	e := ensemble(t)
	lock, err := open(t, e.Connector()).Mutex("jobs/nightly").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	j := &job{client: open(t, e.Connector()), steps: []string{"bills"}}
	if err := j.run(t.Context()); !errors.Is(err, errElsewhere) {
		t.Errorf("run = %v", err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// The request that takes the lock is carried out, and the reply is lost. The job
// notices nothing, and the lock is free afterwards. In a synctest bubble the time
// that the client waits for the reply passes at once.
func TestJobSurvivesALostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := ensemble(t)
		faults := faultdriver.NewLog(faultdriver.Once(faultdriver.On(faultdriver.Multi, faultdriver.LoseReply())))
		done := 0
		j := &job{client: open(t, faultdriver.Wrap(e.Connector(), faults)), steps: []string{"bills"}}
		j.do = func(context.Context, string, zklock.Token) error { done++; return nil }
		if err := j.run(t.Context()); err != nil || done != 1 {
			t.Errorf("run = %v, done %d times, under\n%s", err, done, faults.Text())
		}
		if len(faults.Strikes()) != 1 {
			t.Errorf("the fault did not strike:\n%s", faults.Text())
		}
		lock, err := open(t, e.Connector()).Mutex("jobs/nightly").TryAcquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_ = lock.Release(t.Context())
	})
}

// Nobody answers, for as long as the client has patience.
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
	if out.String() != "one replica did it\n" {
		t.Errorf("it printed %q", &out)
	}
}
