package txnlog_test

import (
	"testing"
	"time"

	"github.com/zklock/go-zklock/contrib/locktest/txnlog"
)

// Behind a reader, a writer's znode may be granted to readers at once. The turn of readers behind it comes when its data say that it is theirs.
func TestTurnsOfAWritersZnodeThatReadersGet(t *testing.T) {
	const first, second, third = "/r/a/x-__READ__0000000001", "/r/a/x-__WRIT__0000000002", "/r/a/x-__READ__0000000003"
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	create := func(second int64, path string) txnlog.Txn {
		return txnlog.Txn{Zxid: second, Session: 1, Time: at(second), Ops: []txnlog.Op{{Kind: txnlog.Create, Path: path, Ephemeral: true}}}
	}
	var q txnlog.Queues
	for _, x := range []txnlog.Txn{
		create(1, first), create(2, second), create(3, third),
		{Zxid: 4, Time: at(4), Ops: []txnlog.Op{{Kind: txnlog.SetData, Path: second, Data: []byte(`{"mode":"shared"}`)}}},
		{Zxid: 5, Time: at(5), Ops: []txnlog.Op{{Kind: txnlog.Delete, Path: first}}},
	} {
		q.Apply(x)
	}
	stays := q.Stays()
	for i, want := range []struct{ turn, shared int64 }{{1, 1}, {4, 2}, {4, 4}} {
		if s := stays[i]; !s.Turn.Equal(at(want.turn)) || !s.SharedTurn.Equal(at(want.shared)) {
			t.Errorf("%s: turn at %v, as a reader at %v, want %+v", s.Path, s.Turn, s.SharedTurn, want)
		}
	}
}
