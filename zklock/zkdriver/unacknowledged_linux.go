package zkdriver

import (
	"encoding/binary"
	"net"
	"syscall"
	"time"

	"github.com/zklock/go-zklock/internal/netcontrol"
)

// tcpUserTimeout is Linux's TCP_USER_TIMEOUT, which package syscall has no name for.
const tcpUserTimeout = 0x12

// limitUnacknowledged makes the kernel end a TCP connection whose peer has not acknowledged what was sent for d. The
// kernel of a server acknowledges, however slow the server is. So the connection ends if the peer's machine or the
// route to it is gone, or if a firewall has forgotten the connection and lets new ones through. The kernel counts from its
// first retransmission, 0.2 to 0.4 s after the write: doubt asks unacknowledged before.
func limitUnacknowledged(c net.Conn, d time.Duration) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds())) // without it, doubt and the client notice later
		})
	}
}

// unacknowledged reports whether the kernel has sent something twice again, and the peer's kernel has acknowledged none
// of it. A kernel acknowledges what arrives, however slow its server is. So if the server answers on another connection, the
// network drops what is sent on this one.
func unacknowledged(c net.Conn) (lost bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return netcontrol.Unacknowledged(c)
	}
	if raw, err := s.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			// Package syscall reads no struct tcp_info, but 32 bytes of any option. They have what is needed: the count of
			// retransmissions is byte 2, and that of unacknowledged segments the word at byte 24.
			info, err := syscall.GetsockoptICMPv6Filter(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
			if err != nil {
				return
			}
			first := binary.NativeEndian.AppendUint32(nil, info.Data[0])
			lost = first[2] >= 2 && info.Data[6] > 0
		})
	}
	return lost
}
