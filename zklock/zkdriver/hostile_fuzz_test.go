package zkdriver_test

import (
	"context"
	"encoding/binary"
	"runtime"
	"testing"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// hostile is a server that sends correct xids and is wrong in everything else: its
// replies' bodies are cut from the bytes that it is given. Each reply starts with one
// byte for the error code and one for the length.
type hostile struct{ rest []byte }

// next returns the error code and body of the next reply; ok is false if no bytes are
// left.
func (h *hostile) next() (code int32, body []byte, ok bool) {
	if len(h.rest) < 2 {
		return 0, nil, false
	}
	code, n := int32(int8(h.rest[0])), int(h.rest[1])
	h.rest = h.rest[2:]
	n = min(n, len(h.rest))
	body, h.rest = h.rest[:n], h.rest[n:]
	return code, body, true
}

// hostileMemory is how much memory all requests of one input may take: enough for the
// client's buffers of the connection, but not for a length that a reply claims.
const hostileMemory = 32 << 20

// FuzzReplies: whatever a server answers to each kind of request, nothing crashes, no
// claimed length is trusted, and every request ends.
func FuzzReplies(f *testing.F) {
	stat := make([]byte, 68)
	f.Add([]byte{0, 5, 0, 0, 0, 1, 'x'})
	f.Add(append([]byte{0, 76, 0, 0, 0, 4, 'd', 'a', 't', 'a'}, stat...))
	f.Add([]byte{0, 4, 0x7f, 0xff, 0xff, 0xff, 0, 4, 0xff, 0xff, 0xff, 0xff, 0, 4, 0x80, 0, 0, 0})
	f.Add([]byte{0, 9, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0x90, 0, 0x9b, 0, 0xa0, 1, 1})
	f.Add([]byte{0x90, 0})
	f.Add(append([]byte{0, 84, 0, 0, 0, 15, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 2, '/', 'a'}, append(stat, 0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 4<<10 {
			return
		}
		p := newPeer(t, func(l *link) {
			if _, ok := l.greet(sid); !ok {
				return
			}
			lies := &hostile{rest: b}
			for {
				r, ok := l.read()
				if !ok {
					return
				}
				if r.op == opClose {
					l.succeed(r)
					return
				}
				code, body, ok := lies.next()
				if !ok {
					// Now send the whole input as it is, whether it consists of
					// frames or not.
					_, _ = l.Write(b)
					return
				}
				l.reply(r, code, body)
			}
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		s, err := open(t, p.url()).Connect(ctx, 4*time.Second)
		if err != nil {
			return
		}
		defer shut(s)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			requests(s)
		}()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatal("a request did not end")
		}
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > hostileMemory {
			t.Fatalf("%d bytes of replies took %d of memory", len(b), after.TotalAlloc-before.TotalAlloc)
		}
	})
}

// requests makes one request of each kind. Its outcome depends on the server and does
// not matter.
func requests(s driver.Session) {
	for _, request := range []func(context.Context){
		func(ctx context.Context) { _, _ = s.Create(ctx, "/a", nil, driver.EphemeralSequential, nil) },
		func(ctx context.Context) { _, _ = s.Get(ctx, "/a") },
		func(ctx context.Context) { _, _, _ = s.Children(ctx, "/a") },
		func(ctx context.Context) {
			_, _ = s.Multi(ctx, []driver.Op{
				driver.CreateOp("/a", nil, driver.EphemeralSequential, nil),
				driver.CreateOp("/b", nil, driver.Container, nil),
				driver.SetOp("/a", nil, driver.AnyVersion),
				driver.DeleteOp("/a", driver.AnyVersion),
				driver.CheckOp("/a", driver.AnyVersion),
			})
		},
		func(ctx context.Context) { _, _, _ = s.Watch(ctx, "/a") },
		func(ctx context.Context) { _, _ = s.Set(ctx, "/a", nil, driver.AnyVersion) },
		func(ctx context.Context) { _ = s.Sync(ctx, "/a") },
		func(ctx context.Context) { _ = s.Delete(ctx, "/a", driver.AnyVersion) },
	} {
		// If the client ignores a reply, the request stays unanswered until ctx ends.
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		request(ctx)
		cancel()
	}
}

// FuzzStream: a server sends arbitrary bytes after the handshake, without a request.
// Nothing crashes, and the session can be closed.
func FuzzStream(f *testing.F) {
	frame := func(b ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...) }
	event := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2, '/', 'a')
	f.Add(frame(event...))
	f.Add(frame(event[:20]...))
	f.Add(frame(append(event[:24:24], 0x7f, 0xff, 0xff, 0xff)...))
	f.Add(frame(0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add(frame(0xff, 0xff, 0xff, 0xfc, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x8d))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x03, 0xff, 0xff, 0xff, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newPeer(t, func(l *link) {
			if _, ok := l.greet(sid); !ok {
				return
			}
			_, _ = l.Write(b)
			l.work()
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := open(t, p.url()).Connect(within(t, 5*time.Second), 4*time.Second)
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		_ = s.Sync(ctx, "/")
		cancel()
		shut(s)
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > hostileMemory {
			t.Fatalf("%d bytes took %d of memory", len(b), after.TotalAlloc-before.TotalAlloc)
		}
	})
}
