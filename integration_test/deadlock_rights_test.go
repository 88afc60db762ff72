package integration_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock"
)

// refusedWaits gets a value for each line of a log that says that the servers refuse registrations of waits.
type refusedWaits chan struct{}

// Write implements io.Writer, for one line.
func (r refusedWaits) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("refuse to register waits")) {
		r <- struct{}{}
	}
	return len(line), nil
}

// TestRegistrationThatServersDoNotDelete: an access list of the register lets a client make registrations, and delete
// none. After the first one the client makes no more. The one goes with its session.
func TestRegistrationThatServersDoNotDelete(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	operator := dialRaw(t, e.Hosts(), patience)
	if err := operator.AddAuth("digest", []byte("operator:"+canary)); err != nil {
		t.Fatal(err)
	}
	root := rootOf(t)
	register := root + "/%waits"
	if _, err := operator.Create(root, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.Create(register, nil, 0, append(zk.AuthACL(zk.PermAll), zk.WorldACL(zk.PermRead|zk.PermCreate)...)); err != nil {
		t.Fatal(err)
	}
	registrations := func() int {
		names, _, err := operator.Children(register)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, name := range names {
			if strings.HasPrefix(name, "w1-") {
				n++
			}
		}
		return n
	}
	refused := make(refusedWaits, 100)
	c := dial(t, e.Hosts(), quick("deadlock_timeout", "100ms"), zklock.WithLogger(slog.New(slog.NewTextHandler(refused, nil))))
	other := dial(t, e.Hosts(), quick())
	x, y := acquire(t, c.Mutex("x")), acquire(t, other.Mutex("y"))
	ctx, cancel := x.Context(within(t))
	defer cancel()
	first, giveUp := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if l, err := c.Mutex("y").Acquire(first); err == nil {
			t.Errorf("acquired %v", l)
		}
	}()
	for limit := within(t); registrations() == 0 && limit.Err() == nil; {
		time.Sleep(10 * time.Millisecond)
	}
	giveUp()
	<-ended
	select {
	case <-refused:
	case <-within(t).Done():
		t.Fatal("the log does not say that the servers refuse something")
	}
	if _, err := c.Mutex("y").Acquire(ctx, zklock.WithWait(time.Second)); err == nil {
		t.Error("acquired")
	}
	if n := registrations(); n != 1 || len(refused) > 0 {
		t.Errorf("%d registrations stand, want the first one; the log says so %d times more", n, len(refused))
	}
	release(t, x)
	release(t, y)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if n := registrations(); n != 0 {
		t.Errorf("%d registrations stand after the end of the session", n)
	}
}
