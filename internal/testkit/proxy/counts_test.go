package proxy_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// frame encodes its arguments as ZooKeeper does: int32, int64, bool, string.
func frame(fields ...any) string {
	var b []byte
	for _, f := range fields {
		switch f := f.(type) {
		case int:
			b = binary.BigEndian.AppendUint32(b, uint32(int32(f)))
		case int64:
			b = binary.BigEndian.AppendUint64(b, uint64(f))
		case bool:
			b = append(b, 0)
			if f {
				b[len(b)-1] = 1
			}
		case string:
			b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
			b = append(b, f...)
		}
	}
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(b)))) + string(b)
}

// Frames that clients send. Opcodes and layouts are those of ZooKeeper's protocol.
var (
	handshake = frame(0, int64(0), 10000, int64(0), "0123456789abcdef")
	getData   = func(xid int) string { return frame(xid, 4, "/a", false) }
	ping      = frame(-2, 11)

	createOp = []any{1, false, -1, "/l/c-", "data", 1, 31, "world", "anyone", 3}
	setOp    = []any{5, false, -1, "/l", "zklock", -1}
	deleteOp = []any{2, false, -1, "/l/c-1", -1}
	checkOp  = []any{13, false, -1, "/l", -1}
	endOp    = []any{-1, true, -1}
)

func multi(xid int, ops ...[]any) string {
	return frame(slices.Concat(append([][]any{{xid, 14}}, append(ops, endOp)...)...)...)
}

// reply is a frame that servers send: xid, zxid, error.
func reply(xid int) string { return frame(xid, int64(7), 0) }

const eventXid = -1

func TestCountsByOperation(t *testing.T) {
	b := newBench(t, proxy.Config{Count: true})
	client, server := b.dial(), b.accept()
	client.send(handshake)
	server.receives(handshake)
	server.send(handshake)
	client.receives(handshake)
	old := b.proxy.Counts()
	if old.Handshakes != 1 || len(old.Requests) != 0 {
		t.Errorf("after the handshake: %v", old)
	}

	// The first frame goes byte by byte, the others all at once.
	up := getData(1)
	for i := range up {
		client.send(up[i : i+1])
		server.receives(up[i : i+1])
	}
	more := ping + multi(2, createOp, setOp, createOp, setOp) + multi(3, deleteOp) + multi(4, checkOp) + frame(5, -11)
	client.send(more)
	server.receives(more)
	down := reply(1) + reply(-2) + frame(eventXid, int64(-1), 0, 2, 3, "/a")
	server.send(down)
	client.receives(down)

	got := b.proxy.Counts().Sub(old)
	if want := "requests (closeSession 1, getData 1, multi 3, ping 1), multis (check 1, create+setData 1, delete 1), events 1, handshakes 0"; got.String()[:len(want)] != want {
		t.Errorf("counted %v\nwant    %s", got, want)
	}
	if n := got.RoundTrips(); n != 5 {
		t.Errorf("%d round trips, want 5: all but the ping", n)
	}
	if got.Replies != 2 || got.MultiOps["create"] != 2 || got.MultiOps["setData"] != 2 {
		t.Errorf("replies %d, want 2; operations %v, want 2 creates, 2 setDatas", got.Replies, got.MultiOps)
	}
	if got.BytesUp != int64(len(up+more)) || got.BytesDown != int64(len(down)) {
		t.Errorf("bytes %d up, %d down, want %d, %d", got.BytesUp, got.BytesDown, len(up+more), len(down))
	}
}

func TestOtherProtocolsAreForwardedUncounted(t *testing.T) {
	b := newBench(t, proxy.Config{Count: true})
	client, server := b.dial(), b.accept()
	client.send("ruok")
	server.receives("ruok")
	server.send("imok")
	client.receives("imok")
	if c := b.proxy.Counts(); c.RoundTrips() != 0 || c.Handshakes != 0 {
		t.Errorf("a four-letter word was counted: %v", c)
	}
}

func TestKillBeforeTheRequestArrives(t *testing.T) {
	b := newBench(t, proxy.Config{Count: true})
	client, server := b.dial(), b.accept()
	struck, err := b.proxy.KillOn("create+setData", proxy.BeforeRequest)
	if err != nil {
		t.Fatal(err)
	}
	client.send(handshake + multi(1, checkOp))
	server.receives(handshake + multi(1, checkOp))
	client.send(multi(2, createOp, setOp))
	client.isReset()
	server.isReset()
	<-struck

	// A second request of that kind is forwarded.
	client, server = b.dial(), b.accept()
	client.send(handshake + multi(2, createOp, setOp))
	server.receives(handshake + multi(2, createOp, setOp))
}

func TestKillBeforeTheReplyArrives(t *testing.T) {
	b := newBench(t, proxy.Config{Count: true})
	client, server := b.dial(), b.accept()
	struck, err := b.proxy.KillOn("multi", proxy.BeforeReply)
	if err != nil {
		t.Fatal(err)
	}
	up := handshake + getData(1) + multi(2, deleteOp)
	client.send(up)
	server.receives(up)
	server.send(handshake + reply(1))
	client.receives(handshake + reply(1))
	select {
	case <-struck:
		t.Fatal("the reply to another request reset the connection")
	default:
	}
	server.send(reply(2))
	client.isReset()
	<-struck
}

func TestKillOnNeedsACountingProxy(t *testing.T) {
	if _, err := newBench(t, proxy.Config{}).proxy.KillOn("multi", proxy.BeforeReply); err == nil {
		t.Error("KillOn on a proxy that does not count returned no error")
	}
}
