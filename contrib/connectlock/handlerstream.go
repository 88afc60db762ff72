package connectlock

import (
	"connectrpc.com/connect"

	"github.com/zklock/go-zklock/internal/holding"
)

// handlerStream is the stream that a handler gets instead of connect's.
type handlerStream struct {
	connect.StreamingHandlerConn
	*holding.Stream
}

// Send implements connect.StreamingHandlerConn.
func (s *handlerStream) Send(m any) error {
	if err := s.Stopped(); err != nil {
		return err
	}
	return s.StreamingHandlerConn.Send(m)
}

// Receive implements connect.StreamingHandlerConn.
func (s *handlerStream) Receive(m any) error { return s.Stream.Receive(m) }
