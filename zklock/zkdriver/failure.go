package zkdriver

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/zklock/go-zklock/zklock/driver"
)

// failure is the reason why a server could not be used.
type failure struct {
	err  error
	kind failureKind
}

// failureKind is what can be expected of another attempt.
type failureKind uint8

const (
	passing   failureKind = iota // connection refused, timed out, name not resolved
	silent                       // the server closed the connection before it answered
	permanent                    // not a ZooKeeper server, a certificate or an identity that is not accepted, a password that may not be sent there
)

// classify returns what can be expected of another attempt after err.
func classify(err error) failureKind {
	switch {
	case errors.Is(err, errNotZooKeeper), errors.Is(err, errNotLoopback), errors.Is(err, driver.ErrAuthFailed), permanentTLS(err):
		return permanent
	case errors.Is(err, errNoQuorum), errors.Is(err, errReadOnly):
		return silent
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return passing
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return silent
	}
	return passing
}
