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

// TestOperatorDeletesTheHoldersNode: the holder learns that it is one no more,
// whether it got in at once or after a wait.
func TestOperatorDeletesTheHoldersNode(t *testing.T) {
	e := sharedEnsemble(t)
	raw := dialRaw(t, e.Hosts(), 10*time.Second)
	hooks, waiting := waits()
	c, other := dial(t, e.Hosts(), quick("session_timeout", "3s")), dial(t, e.Hosts(), quick(), zklock.WithHooks(hooks))
	first := acquire(t, c.Mutex("x"))
	next := try(t, within(t), other.Mutex("x"))
	receive(t, "the wait", waiting)
	deleteOldest(t, raw, c.Mutex("x"))
	second := next.must(t)
	wantLost(t, first)
	if st := c.Stats(); st.SessionsLost != 0 || st.Held != 0 || st.Lost != 1 {
		t.Errorf("%+v, want a session that was not lost", st)
	}

	deleteOldest(t, raw, c.Mutex("x"))
	wantLost(t, second)
	release(t, acquire(t, c.Mutex("x")))

	// Nobody told this one before it looked by itself.
	third := acquire(t, c.Mutex("y"))
	deleteOldest(t, raw, c.Mutex("y"))
	if err := third.Verify(within(t)); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("Verify: %v, want ErrLost", err)
	}
	wantLost(t, third)
	// Nor this one.
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

// deleteOldest does what an operator does to the one in front.
func deleteOldest(t *testing.T, raw *zk.Conn, m *zklock.Mutex) {
	t.Helper()
	if err := raw.Delete(m.Path()+"/"+queue(t, raw, m)[0], -1); err != nil {
		t.Fatal(err)
	}
}

// queue lists the contenders in order of their sequence numbers.
func queue(t *testing.T, raw *zk.Conn, m *zklock.Mutex) []string {
	t.Helper()
	q := contenders(t, raw, m)
	slices.SortFunc(q, func(a, b string) int { return strings.Compare(a[len(a)-10:], b[len(b)-10:]) })
	return q
}

// TestOperatorDeletesAWaitersNode: the one behind it must not take the absence
// for its turn, and the waiter itself goes to the tail.
func TestOperatorDeletesAWaitersNode(t *testing.T) {
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
		t.Errorf("token %v after %v", l.Token(), held.Token())
	}
	// The second has queued anew: then there are two nodes, and it still waits.
	eventually(t, "the second is in the queue again", func() bool { return len(contenders(t, raw, m)) == 2 })
	second.pending(t)
	release(t, l)
	last := second.must(t)
	if last.Token().Compare(l.Token()) <= 0 {
		t.Errorf("token %v after %v", last.Token(), l.Token())
	}
	release(t, last)
	eventually(t, "nobody is in the queue", func() bool { return len(contenders(t, raw, m)) == 0 })
}
