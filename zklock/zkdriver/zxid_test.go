package zkdriver_test

import (
	"encoding/binary"
	"strconv"
	"strings"
	"testing"
)

// What a session has seen is what its requests were answered with, whatever else
// a server sends, and watches are set again from what was seen before the
// connection. The client underneath counts all replies, from a goroutine that
// races with the one that sets watches: with the race detector this test is
// about that too.
func TestWatchesAreSetFromWhatWasSeen(t *testing.T) {
	const (
		watches = 300 // with paths so long that they are set in two requests
		newest  = 0x20
	)
	type seen struct{ connect, watches uint64 }
	told := make(chan seen, 2)
	p := newPeer(t, func(l *link) {
		if _, ok := l.greet(sid); !ok {
			return
		}
		unasked := func(zxid uint64) { l.replyAt(zxid, req{xid: 1 << 30}, 0, nil) }
		if l.n > 1 {
			unasked(0x1000) // perhaps before the client gets to its watches
		}
		var first req // the SetWatches that is not answered before a Sync
		for {
			r, ok := l.read()
			switch {
			case !ok:
				return
			case r.op == opAuth:
				l.replyAt(0x2000, r, 0, nil) // a real server says 0, and this must not matter
				if l.n == 1 {
					unasked(0x3000)
				}
			case r.op == opGetData:
				l.replyAt(0x10, r, 0, append(str("data"), make([]byte, 68)...))
			case r.op == opSetWatch:
				told <- seen{l.seen, binary.BigEndian.Uint64(r.body)}
				if first.op == 0 {
					first = r
					continue
				}
				l.replyAt(0x50, r, 0, nil)
			case r.op == opSync && l.n == 1:
				l.replyAt(newest, r, 0, str("/"))
				l.replyAt(0x4000, req{xid: 1 << 30}, 0, nil)
			case r.op == opSync:
				l.replyAt(0x40, r, 0, str("/"))
				if first.op != 0 {
					l.replyAt(0x41, first, 0, nil)
				}
			default:
				l.replyAt(0, r, 0, nil)
				if r.op == opClose {
					return
				}
			}
		}
	})
	s := connect(t, withUser(p.url()))
	ctx := t.Context()
	for i := range watches {
		if _, _, err := s.Watch(ctx, "/"+strings.Repeat("w", 600)+strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Sync(ctx, "/"); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "/x", 0); err != nil { // by its reply, which has no zxid, all before it was read
		t.Fatal(err)
	}
	p.drop()
	generation(t, s, 2)                      // or it would go out on the broken one
	if err := s.Sync(ctx, "/"); err != nil { // waits for the first SetWatches, and overtakes the second
		t.Error(err)
	}
	for range 2 {
		if got := recv(t, told); got != (seen{newest, newest}) {
			t.Errorf("on the new connection %#x was seen, and watches are set from %#x, want %#x", got.connect, got.watches, newest)
		}
	}
}
