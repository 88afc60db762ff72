package proxy

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// maxFrame is the length of the longest plausible frame. A stream with a longer one is not
// ZooKeeper's client protocol, but a four-letter word or TLS. The rest is not parsed.
const maxFrame = 64 << 20

// xidEvent is the xid of a server's watch events.
const xidEvent = -1

// opNames are ZooKeeper's names of its operations, by opcode.
var opNames = map[int32]string{
	1: "create", 2: "delete", 3: "exists", 4: "getData", 5: "setData", 6: "getACL", 7: "setACL",
	8: "getChildren", 9: "sync", 11: "ping", 12: "getChildren2", 13: "check", 14: "multi",
	15: "create2", 16: "reconfig", 17: "checkWatches", 18: "removeWatches", 19: "createContainer",
	20: "deleteContainer", 21: "createTTL", 22: "multiRead", 100: "auth", 101: "setWatches",
	102: "sasl", 103: "getEphemerals", 104: "getAllChildrenNumber", 105: "setWatches2",
	106: "addWatch", 107: "whoAmI", -10: "createSession", -11: "closeSession",
}

// opMulti is the opcode of a transaction.
const opMulti = 14

func opName(code int32) string {
	if n, ok := opNames[code]; ok {
		return n
	}
	return "op" + strconv.Itoa(int(code))
}

// reading follows the frames of one connection.
type reading struct {
	counter *counter
	streams [2]stream // by Direction-1; each touched by its own reader only

	mu      sync.Mutex
	pending map[int32]*trap // by xid: requests whose replies will spring a trap
}

// stream cuts the bytes of one direction into frames.
type stream struct {
	buf     []byte
	first   bool // the handshake has passed
	foreign bool // not ZooKeeper's client protocol
}

func newReading(k *counter) *reading {
	return &reading{counter: k, pending: make(map[int32]*trap)}
}

// feed counts the frames in data. It reports whether to reset the connection instead of
// forwarding these bytes.
func (r *reading) feed(d Direction, data []byte) (kill bool) {
	r.counter.mu.Lock()
	if d == Up {
		r.counter.total.BytesUp += int64(len(data))
	} else {
		r.counter.total.BytesDown += int64(len(data))
	}
	r.counter.mu.Unlock()

	s := &r.streams[d-1]
	if s.foreign {
		return false
	}
	s.buf = append(s.buf, data...)
	for len(s.buf) >= 4 {
		n := int(int32(binary.BigEndian.Uint32(s.buf)))
		if n < 0 || n > maxFrame {
			s.foreign, s.buf = true, nil
			return kill
		}
		if len(s.buf) < 4+n {
			break
		}
		frame := s.buf[4 : 4+n]
		switch {
		case !s.first:
			s.first = true
			r.handshake(d)
		case d == Up:
			kill = r.request(frame) || kill
		default:
			kill = r.reply(frame) || kill
		}
		s.buf = s.buf[4+n:]
	}
	return kill
}

func (r *reading) handshake(d Direction) {
	if d == Down {
		return
	}
	r.counter.mu.Lock()
	defer r.counter.mu.Unlock()
	r.counter.total.Handshakes++
}

// request counts a request: xid, opcode, body.
func (r *reading) request(frame []byte) (kill bool) {
	f := fields{b: frame}
	xid, code := f.int32(), f.int32()
	if f.bad {
		return false
	}
	names := []string{opName(code)}
	var ops []string
	if code == opMulti {
		ops = multiOps(f)
		names = append(names, kinds(ops))
	}

	k := r.counter
	k.mu.Lock()
	defer k.mu.Unlock()
	k.total.Requests[names[0]]++
	if code == opMulti {
		k.total.Multis[names[1]]++
		for _, op := range ops {
			k.total.MultiOps[op]++
		}
	}
	t := k.springLocked(names...)
	if t == nil {
		return false
	}
	if t.at == BeforeRequest {
		close(t.struck)
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending[xid] = t
	return false
}

// reply counts a reply or event: xid, zxid, error, body.
func (r *reading) reply(frame []byte) (kill bool) {
	f := fields{b: frame}
	xid := f.int32()
	if f.bad {
		return false
	}
	r.counter.mu.Lock()
	if xid == xidEvent {
		r.counter.total.Events++
	} else {
		r.counter.total.Replies++
	}
	r.counter.mu.Unlock()

	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.pending[xid]
	if t == nil {
		return false
	}
	delete(r.pending, xid)
	close(t.struck)
	return true
}

// multiOps lists the operations of a multi request. It stops at an operation whose layout
// it does not know: it cannot find those behind it.
func multiOps(f fields) []string {
	var ops []string
	for {
		code, done, _ := f.int32(), f.bool(), f.int32()
		if f.bad || done {
			return ops
		}
		ops = append(ops, opName(code))
		f.skip() // path
		switch code {
		case 1, 15, 19, 21: // data, ACL, flags; a TTL
			f.skip()
			for n := f.int32(); n > 0 && !f.bad; n-- {
				f.int32()
				f.skip()
				f.skip()
			}
			f.int32()
			if code == 21 {
				f.take(8)
			}
		case 2, 13: // version
			f.int32()
		case 5: // data, version
			f.skip()
			f.int32()
		default:
			return ops
		}
	}
}

// kinds names each kind of operation once.
func kinds(ops []string) string {
	var once []string
	for _, op := range ops {
		if !slices.Contains(once, op) {
			once = append(once, op)
		}
	}
	return strings.Join(once, "+")
}

// fields reads a frame in ZooKeeper's encoding. After a read beyond the end, bad is set
// and every read returns zeros.
type fields struct {
	b   []byte
	bad bool
}

func (f *fields) take(n int) []byte {
	if f.bad || n > len(f.b) {
		f.bad = true
		return make([]byte, 8)
	}
	v := f.b[:n]
	f.b = f.b[n:]
	return v
}

func (f *fields) int32() int32 { return int32(binary.BigEndian.Uint32(f.take(4))) }

func (f *fields) bool() bool { return f.take(1)[0] != 0 }

// skip passes over a string or buffer: its length, -1 for none, and its bytes.
func (f *fields) skip() {
	if n := f.int32(); n > 0 {
		f.take(int(n))
	}
}
