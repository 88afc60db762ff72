package zkdriver_test

import (
	"encoding/binary"
	"strconv"
	"strings"
	"testing"
)

// After a reconnect a session sets its watches from the newest zxid that it has seen. That is the
// newest in the replies to its own requests, whatever else a server sends. The client itself counts
// all replies, in a goroutine that races with the one that sets watches; the race detector checks
// that here too.
func TestWatchesAreSetFromWhatWasSeen(t *testing.T) {
	const (
		watches = 10 // with paths so long that they are set in two requests
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
			unasked(0x1000) // perhaps before the watches are set
		}
		var first req // the first SetWatches, which is answered only after a Sync
		for {
			r, ok := l.read()
			switch {
			case !ok:
				return
			case r.op == opAuth:
				l.replyAt(0x2000, r, 0, nil) // a real server sends zxid 0; another one must make no difference
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
	if err := s.Delete(ctx, "/x", 0); err != nil { // its reply has no zxid; when it arrives, all earlier replies have been read
		t.Fatal(err)
	}
	p.drop()
	generation(t, s, 2)                      // otherwise the next request would be sent on the broken connection
	if err := s.Sync(ctx, "/"); err != nil { // the peer answers the first SetWatches after it, and the second one before it
		t.Error(err)
	}
	for range 2 {
		if got := recv(t, told); got != (seen{newest, newest}) {
			t.Errorf("the new connection was made with zxid %#x, and watches were set from %#x, want both %#x", got.connect, got.watches, newest)
		}
	}
}
