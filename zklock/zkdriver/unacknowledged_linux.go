package zkdriver

import (
	"net"
	"syscall"
	"time"
)

// tcpUserTimeout is Linux's TCP_USER_TIMEOUT, which package syscall has no name for.
const tcpUserTimeout = 0x12

// limitUnacknowledged makes the kernel end a TCP connection whose peer has not acknowledged what was sent for d. The
// kernel of a server acknowledges, however slow the server is. So the connection ends if the peer's machine or the
// route to it is gone, or if a firewall has forgotten the connection and lets new ones through.
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
