package memdriver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A process is stopped for longer than its session lives. Afterwards it finds its
// connection and its state unchanged, and learns of the expiry a moment later.
func TestFrozenClientLearnsOfItsEndAtTheThaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(map[int64]time.Time)
		e := memdriver.New(memdriver.WithLatency(time.Millisecond), memdriver.WithTickTime(time.Second),
			memdriver.WithJournal(func(tx memdriver.Transaction) {
				if tx.Ended {
					ended[tx.Session] = tx.At
				}
			}))
		defer e.Close()
		ctx := context.Background()
		s, err := e.Connector().Connect(ctx, 4*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		thaw := e.Freeze(s.ID())
		call := make(chan error, 1)
		go func() {
			_, err := s.Create(ctx, "/x", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll))
			call <- err
		}()
		pause := time.NewTimer(10 * time.Second)
		<-pause.C
		synctest.Wait()
		if state, _ := s.State(); state != driver.Connected {
			t.Errorf("the state of a stopped client changed to %v", state)
		}
		if at, ok := ended[s.ID()]; !ok || at.Sub(began) > 6*time.Second {
			t.Errorf("the session did not expire in time: %v", ended)
		}
		select {
		case err := <-call:
			t.Errorf("a call returned while the process was stopped: %v", err)
		default:
		}
		thaw()
		if err := <-call; !errors.Is(err, driver.ErrSessionExpired) && !errors.Is(err, driver.ErrConnLoss) {
			t.Errorf("create after the thaw: %v", err)
		}
		for state, changed := s.State(); state != driver.Expired; state, changed = s.State() {
			<-changed
		}
		thaw()
	})
}

// A client that is stopped for a short time goes on, with the messages that arrived during the
// stop, even if its connection was reset.
func TestFrozenClientGoesOn(t *testing.T) {
	for _, reset := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond))
			defer e.Close()
			ctx := context.Background()
			s, err := e.Connector().Connect(ctx, 10*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			thaw := e.Freeze(s.ID())
			if reset {
				e.KillConnection(s.ID())
			}
			call := make(chan error, 1)
			go func() {
				_, err := s.Create(ctx, "/x", nil, driver.Ephemeral, driver.OpenACL(driver.PermAll))
				call <- err
			}()
			pause := time.NewTimer(5 * time.Second)
			<-pause.C
			synctest.Wait()
			if state, _ := s.State(); state != driver.Connected {
				t.Errorf("reset %v: the state of a stopped client changed to %v", reset, state)
			}
			thaw()
			if err := <-call; err != nil {
				t.Errorf("reset %v: create after the thaw: %v", reset, err)
			}
			if err := s.Close(ctx); err != nil {
				t.Errorf("reset %v: close: %v", reset, err)
			}
		})
	}
}

// The journal reports each committed transaction once and in order, whichever server
// leads.
func TestJournalIsTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []memdriver.Transaction
		e := memdriver.New(memdriver.WithServers(3), memdriver.WithLatency(time.Millisecond), memdriver.WithJournal(func(tx memdriver.Transaction) {
			log = append(log, tx)
		}))
		defer e.Close()
		ctx := context.Background()
		s, err := e.Connector().Connect(ctx, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		acl := driver.OpenACL(driver.PermAll)
		_, err = s.Create(ctx, "/x", []byte("1"), driver.Persistent, acl)
		must(err)
		_, err = s.Create(ctx, "/x", nil, driver.Persistent, acl)
		if !errors.Is(err, driver.ErrNodeExists) {
			t.Fatal(err)
		}
		e.Restart(e.Leader())
		_, err = s.Multi(ctx, []driver.Op{driver.CreateOp("/x/n-", nil, driver.EphemeralSequential, acl), driver.SetOp("/x", []byte("2"), driver.AnyVersion)})
		for errors.Is(err, driver.ErrConnLoss) { // the leader has changed, and the request was not applied
			_, err = s.Multi(ctx, []driver.Op{driver.CreateOp("/x/n-", nil, driver.EphemeralSequential, acl), driver.SetOp("/x", []byte("2"), driver.AnyVersion)})
		}
		must(err)
		must(s.Close(ctx))
		id := s.ID()
		want := []memdriver.Change{
			{Kind: driver.OpCreate, Path: "/x", Data: []byte("1")},
			{Kind: driver.OpCreate, Path: "/x/n-0000000000", Data: []byte{}, Owner: id},
			{Kind: driver.OpSet, Path: "/x", Data: []byte("2")},
			{Kind: driver.OpDelete, Path: "/x/n-0000000000"},
		}
		var got []memdriver.Change
		zxid := int64(0)
		for _, tx := range log {
			if tx.Zxid <= zxid {
				t.Errorf("transaction %#x was reported after %#x", tx.Zxid, zxid)
			}
			zxid = tx.Zxid
			got = append(got, tx.Changes...)
		}
		if len(got) != len(want) {
			t.Fatalf("journal %+v, want %+v", got, want)
		}
		for i := range want {
			g, w := got[i], want[i]
			if g.Kind != w.Kind || g.Path != w.Path || g.Owner != w.Owner || string(g.Data) != string(w.Data) {
				t.Errorf("change %d is %+v, want %+v", i, g, w)
			}
		}
		if last := log[len(log)-1]; !last.Ended || last.Session != id {
			t.Errorf("the last transaction is %+v, want the end of session %#x", last, id)
		}
	})
}

// Replies that are released while the client is stopped still wait for the client.
func TestFrozenClientWithRepliesHeld(t *testing.T) {
	bubble(t, func(t *testing.T, e *memdriver.Ensemble) {
		s := connect(t, e.Connector(), 10*time.Second)
		release := e.HoldReplies(s.ID())
		call := make(chan error, 1)
		go func() { call <- s.Sync(t.Context(), "/") }()
		pass(time.Second)
		thaw := e.Freeze(s.ID())
		release()
		release()
		pass(time.Second)
		select {
		case err := <-call:
			t.Errorf("a call returned while the client was stopped: %v", err)
		default:
		}
		thaw()
		if err := <-call; err != nil {
			t.Error(err)
		}
		pass(30 * time.Second) // several pings, one at a time
		e.KillConnection(s.ID())
		pass(30 * time.Second)
		if state(s) != driver.Connected {
			t.Errorf("the session's state is %v", state(s))
		}
	}, memdriver.WithLatency(time.Millisecond))
}
