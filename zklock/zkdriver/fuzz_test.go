package zkdriver_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// FuzzHandshake: whatever a peer sends first, the result is either a ConnectResponse,
// unchanged byte by byte, or an error.
func FuzzHandshake(f *testing.F) {
	good := append([]byte{0, 0, 0, 37, 0, 0, 0, 0, 0, 0, 0x27, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 16}, make([]byte, 17)...)
	f.Add(good)
	f.Add(good[:20])
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Add([]byte{0x15, 3, 1, 0, 2, 2, 40})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, timeout, id, err := zkdriver.ReadHandshake(bytes.NewReader(b))
		if err != nil {
			if !errors.Is(err, zkdriver.ErrNotZooKeeper) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("unexpected kind of error: %v", err)
			}
			return
		}
		if len(frame) > 4+256 || !bytes.HasPrefix(b, frame) || int(binary.BigEndian.Uint32(frame)) != len(frame)-4 {
			t.Fatalf("frame %x was returned as %x", b, frame)
		}
		if timeout < 0 || id != 0 && timeout == 0 {
			t.Fatalf("session %#x with timeout %v", id, timeout)
		}
	})
}

// FuzzFrame: a frame is returned unchanged or not at all, and takes no more memory
// than was sent. No body makes checkBody crash, and what it returns is a frame that a second
// call leaves unchanged.
func FuzzFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0}, int32(14))
	f.Add([]byte{0, 0, 0, 15, 1, 2, 3}, int32(4))
	f.Add([]byte{3, 255, 255, 255, 1}, int32(12))
	f.Add(append([]byte{0, 0, 0, 25}, make([]byte, 25)...), int32(14))
	for _, kind := range []int32{1, 15, 19} { // the results of creates
		made := append(slicesOf(multiHeader(kind, false), str("/a")), make([]byte, 68)...)
		body := slicesOf(make([]byte, 16), made, multiHeader(1, false), str("/a/b"), multiHeader(-1, true))
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...), int32(14))
		f.Add(append(binary.BigEndian.AppendUint32(nil, uint32(16+len(made)-1)), body[:16+len(made)-1]...), int32(14))
	}
	f.Fuzz(func(t *testing.T, b []byte, opcode int32) {
		frame, largest, err := zkdriver.ReadFrame(bytes.NewReader(b))
		if largest > 2*len(b)+128<<10 {
			t.Fatalf("%d bytes took %d of memory", len(b), largest)
		}
		if err != nil {
			return
		}
		if len(frame) < 4+16 || !bytes.HasPrefix(b, frame) || int(binary.BigEndian.Uint32(frame)) != len(frame)-4 {
			t.Fatalf("frame %x was returned as %x", b, frame)
		}
		checked, err := zkdriver.CheckBody(opcode, bytes.Clone(frame))
		if err != nil {
			return
		}
		if len(checked) < 4+16 || len(checked) > len(frame) || int(binary.BigEndian.Uint32(checked)) != len(checked)-4 || !bytes.Equal(checked[4:20], frame[4:20]) {
			t.Fatalf("frame %x became %x", frame, checked)
		}
		if again, err := zkdriver.CheckBody(opcode, bytes.Clone(checked)); err != nil || !bytes.Equal(again, checked) {
			t.Fatalf("frame %x became %x, and then %x, %v", frame, checked, again, err)
		}
	})
}
