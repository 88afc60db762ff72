package integration_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock"
)

// TestOperatorDeletesTheHoldersNode: the holder learns that it has lost the lock, whether it
// acquired it at once or after a wait.
func TestOperatorDeletesTheHoldersNode(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	hooks, waiting := waits()
	c, other := dial(t, e.Hosts(), quick()), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	first := acquire(t, c.Mutex("x"))
	next := try(t, within(t), other.Mutex("x"))
	receive(t, "the wait", waiting)
	deleteOldest(t, raw, c.Mutex("x"))
	second := next.must(t)
	wantLost(t, first)
	if st := c.Stats(); st.SessionsLost != 0 || st.Held != 0 || st.Lost != 1 {
		t.Errorf("%+v, want one lost lock, and no lost session", st)
	}

	deleteOldest(t, raw, c.Mutex("x"))
	wantLost(t, second)
	release(t, acquire(t, c.Mutex("x")))

	// This holder may not know yet when it calls Verify.
	third := acquire(t, c.Mutex("y"))
	deleteOldest(t, raw, c.Mutex("y"))
	if err := third.Verify(within(t)); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("Verify: %v, want ErrLost", err)
	}
	wantLost(t, third)
	// This holder may not know yet when it calls Release.
	fourth := acquire(t, c.Mutex("z"))
	deleteOldest(t, raw, c.Mutex("z"))
	if err := fourth.Release(within(t)); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("Release: %v, want ErrLost", err)
	}
}

func wantLost(t *testing.T, l *zklock.Lock) {
	t.Helper()
	receive(t, "Done", l.Done())
	var lost *zklock.LostError
	if err := l.Err(); !errors.Is(err, zklock.ErrLost) || !errors.As(err, &lost) || l.Valid() {
		t.Errorf("%v, valid %v, want a *LostError", err, l.Valid())
	}
}

// deleteOldest deletes the first contender's node, as an operator may do.
func deleteOldest(t *testing.T, raw *zk.Conn, m *zklock.Mutex) {
	t.Helper()
	if err := raw.Delete(m.Path()+"/"+queue(t, raw, m)[0], -1); err != nil {
		t.Fatal(err)
	}
}

// queue lists the contenders in the order of their sequence numbers.
func queue(t *testing.T, raw *zk.Conn, m *zklock.Mutex) []string {
	t.Helper()
	q := contenders(t, raw, m)
	slices.SortFunc(q, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	return q
}

// TestOperatorDeletesAWaitersNode: when a waiter's node is deleted, the waiter behind it must
// not conclude that its turn has come. The waiter without a node queues again at the tail.
func TestOperatorDeletesAWaitersNode(t *testing.T) {
	t.Parallel()
	e := sharedEnsemble(t)
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	hooks, waiting := waits()
	var clients []*zklock.Client
	for range 3 {
		clients = append(clients, dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks)))
	}
	m := clients[0].Mutex("x")
	held := acquire(t, m)
	second := try(t, within(t), clients[1].Mutex("x"))
	receive(t, "the second to wait", waiting)
	third := try(t, within(t), clients[2].Mutex("x"))
	receive(t, "the third to wait", waiting)
	q := queue(t, raw, m)
	if len(q) != 3 {
		t.Fatalf("%v in the queue, want three", q)
	}
	if err := raw.Delete(m.Path()+"/"+q[1], -1); err != nil {
		t.Fatal(err)
	}
	second.pending(t)
	third.pending(t)
	if held.Err() != nil {
		t.Fatal(held.Err())
	}
	release(t, held)
	l := third.must(t)
	if l.Token().Compare(held.Token()) <= 0 {
		t.Errorf("token %v after %v, want a greater one", l.Token(), held.Token())
	}
	// The second client has queued again when the queue has two nodes. It still waits.
	eventually(t, "the second client is in the queue again", func() bool { return len(contenders(t, raw, m)) == 2 })
	second.pending(t)
	release(t, l)
	last := second.must(t)
	if last.Token().Compare(l.Token()) <= 0 {
		t.Errorf("token %v after %v, want a greater one", last.Token(), l.Token())
	}
	release(t, last)
	eventually(t, "the queue is empty", func() bool { return len(contenders(t, raw, m)) == 0 })
}
